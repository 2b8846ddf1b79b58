// SPDX-License-Identifier: Apache-2.0
/* The output of meters; the first byte chooses the kind. A number that comes out is one that a meter could mean. */
#include <stdlib.h>
#include <string.h>
#include "source/meter/meter_ops.h"

static void check(const int64_t *uw, int n)
{
	for (int i = 0; i < n; i++)
		if (uw[i] != METER_NO_VALUE && (uw[i] > METER_MAX_UW || uw[i] < -METER_MAX_UW))
			abort();
}

static void lines(const char *text)
{
	struct meter_value v[METER_CHANNELS];
	unsigned n = meter_parse_line(text, v, METER_CHANNELS);

	for (unsigned i = 0; i < n; i++) {
		check(&v[i].power_uw, 1);
		if (v[i].device > 9 || v[i].channel > 9)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t uw[METER_MAX_CHANNELS];
	char *text;

	if (size < 1 || size > 65536)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	if (data[0] % 6 == 0)
		lines(text);
	else if (data[0] % 6 == 1)
		check(uw, meter_shelly_parse(text, size - 1, uw, METER_MAX_CHANNELS));
	else if (data[0] % 6 == 2)
		check(uw, meter_tasmota_parse(text, size - 1, uw, METER_MAX_CHANNELS));
	else if (data[0] % 6 == 3)
		check(uw, meter_dcmi_decode(data + 1, size - 1, uw) == 0);
	else if (data[0] % 6 == 4)
		check(uw, meter_redfish_parse(text, size - 1, uw) == 0);
	else
		meter_serial_check(data + 1, size - 1, 8);
	free(text);
	return 0;
}
