// SPDX-License-Identifier: Apache-2.0
/* The domain that a label names. Chips with labels of their own stand in a table; firmware behind SCMI and the zones of
 * dtpm chooses its names, so that their words decide, and a name without a known word is no domain. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "domain.h"
#include "sensor_list.h"

enum number { NUMBER_NONE, NUMBER_PACKAGE, NUMBER_PART };

/* drivers/hwmon/amd_energy.c; acpi_power_meter with the OEM texts of Grace. '#' is a number. Module holds socket, memory
 * and GPU of a Grace module, Grace the socket, CPU and SysIO its two rails. */
static const struct {
	const char *chip, *label;
	enum domain_kind kind;
	enum number number;
} table[] = {
	{ "amd_energy", "Esocket#", DOMAIN_PACKAGE, NUMBER_PACKAGE },
	{ "amd_energy", "Ecore#", DOMAIN_CORE, NUMBER_PART },
	{ "power_meter", "Module Power Socket #", DOMAIN_PSYS, NUMBER_PACKAGE },
	{ "power_meter", "Grace Power Socket #", DOMAIN_PACKAGE, NUMBER_PACKAGE },
	{ "power_meter", "CPU Power Socket #", DOMAIN_CORE, NUMBER_PACKAGE },
	{ "power_meter", "SysIO Power Socket #", DOMAIN_UNCORE, NUMBER_PACKAGE },
	{ "power_meter", "", DOMAIN_PSYS, NUMBER_NONE },
};

/* In the order in which they decide: "CPU package" is a package, "SoC DDR" is memory. */
static const struct {
	const char *word;
	enum domain_kind kind; /* DOMAIN_GPU: gpu.md has it, it is none of ours */
} words[] = {
	{ "gpu", DOMAIN_GPU },       { "dram", DOMAIN_DRAM },      { "ddr", DOMAIN_DRAM },
	{ "memory", DOMAIN_DRAM },   { "mem", DOMAIN_DRAM },       { "package", DOMAIN_PACKAGE },
	{ "pkg", DOMAIN_PACKAGE },   { "socket", DOMAIN_PACKAGE }, { "uncore", DOMAIN_UNCORE },
	{ "core", DOMAIN_CORE },     { "cores", DOMAIN_CORE },     { "cpu", DOMAIN_CORE },
	{ "cpus", DOMAIN_CORE },     { "cluster", DOMAIN_CORE },   { "big", DOMAIN_CORE },
	{ "little", DOMAIN_CORE },   { "soc", DOMAIN_PSYS },       { "sys", DOMAIN_PSYS },
	{ "system", DOMAIN_PSYS },   { "board", DOMAIN_PSYS },     { "module", DOMAIN_PSYS },
	{ "platform", DOMAIN_PSYS },
};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

/* Digits at *at, which moves behind them; false when there are none or they are too many. */
static bool take_number(const char **at, unsigned *ret)
{
	unsigned v = 0, n = 0;

	for (; isdigit((unsigned char)**at) && n < 5; n++)
		v = v * 10 + (unsigned)(*(*at)++ - '0');
	*ret = v;
	return n > 0 && n < 5;
}

static bool matches(const char *pattern, const char *label, unsigned *ret_number)
{
	for (; *pattern; pattern++) {
		if (*pattern == '#') {
			if (!take_number(&label, ret_number))
				return false;
		} else if (tolower((unsigned char)*pattern) != tolower((unsigned char)*label++)) {
			return false;
		}
	}
	return !*label;
}

static bool by_words(const char *chip)
{
	return strcmp(chip, "scmi_sensors") == 0 || strcmp(chip, "arm-scmi") == 0 || strcmp(chip, "dtpm") == 0;
}

static size_t word_at(const char *label, size_t len)
{
	for (size_t i = 0; i < N_WORDS; i++)
		if (strlen(words[i].word) == len && strncasecmp(words[i].word, label, len) == 0)
			return i;
	return N_WORDS;
}

/* Words are runs of letters. The number behind a socket or package is its own, any other is that of a part. */
static int parse_words(const char *label, struct sensor_label *ret)
{
	size_t best = N_WORDS;

	while (*label) {
		size_t len = 0, word;
		bool socket;
		unsigned number;

		while (isalpha((unsigned char)label[len]))
			len++;
		word = word_at(label, len);
		socket = word < N_WORDS && words[word].kind == DOMAIN_PACKAGE;
		if (word < best)
			best = word;
		label += len;
		while (len && (*label == ' ' || *label == '_' || *label == '-'))
			label++;
		if (isdigit((unsigned char)*label)) {
			if (!take_number(&label, &number) || number > ENERGY_MAX_PACKAGE)
				return -ENOENT;
			if (socket)
				ret->package = (uint16_t)number;
			else
				ret->part = number;
			ret->has_part |= !socket;
		} else if (!len && *label) {
			label++;
		}
	}
	if (best == N_WORDS || words[best].kind == DOMAIN_GPU)
		return -ENOENT;
	ret->kind = words[best].kind;
	return 0;
}

int sensor_label_parse(const char *chip, const char *label, struct sensor_label *ret)
{
	*ret = (struct sensor_label){ 0 };
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		unsigned number = 0;

		if (strcmp(table[i].chip, chip) != 0 || !matches(table[i].label, label, &number) ||
		    number > ENERGY_MAX_PACKAGE)
			continue;
		ret->kind = table[i].kind;
		ret->package = table[i].number == NUMBER_PACKAGE ? (uint16_t)number : 0;
		ret->part = table[i].number == NUMBER_PART ? number : 0;
		ret->has_part = table[i].number == NUMBER_PART;
		return 0;
	}
	return by_words(chip) ? parse_words(label, ret) : -ENOENT;
}
