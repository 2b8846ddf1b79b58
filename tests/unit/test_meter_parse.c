/* SPDX-License-Identifier: Apache-2.0 */
/* The output of meters, taken apart: lines, frames, management controllers, plugs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>
#include "base/clock.h"
#include "source/meter/meter_ops.h"

static void lines(void **state)
{
	struct meter_value v[4];

	assert_int_equal(meter_parse_line("d0c0=12.5 d0c1=3000mW,d1c9=1e3uW; d0c2=2kW", v, 4), 4);
	assert_int_equal(v[0].power_uw, 12500000);
	assert_int_equal(v[1].power_uw, 3000000);
	assert_int_equal(v[1].channel, 1);
	assert_int_equal(v[2].power_uw, 1000);
	assert_int_equal(v[2].device, 1);
	assert_int_equal(v[2].channel, 9);
	assert_int_equal(v[3].power_uw, 2000000000);
	assert_int_equal(meter_parse_line("d0c0=-3.5", v, 4), 1);
	assert_int_equal(v[0].power_uw, -3500000);
	assert_int_equal(meter_parse_line("d0c0=1 d0c0=2 d0c0=3", v, 2), 2);
}

static void no_lines(void **state)
{
	static const char *const bad[] = {
		"",           "d0c0",
		"d0c0=",      "d0c0=W",
		"d0c0=1x",    "d0c0=1 2W=",
		"d10c0=1",    "d0c10=1",
		"D0C0=1",     "psu1=3",
		"d0c0=nan",   "d0c0=inf",
		"d0c0=1e300", "d0c0=2000000000",
		"d0c0=1.2.3", "d0c0==1",
		"dxc0=1",     "d0c0=11111111111111111111111111111111111111111111111111111111111111111"
	};
	struct meter_value v[4];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(meter_parse_line(bad[i], v, 4), i == 5);
}

/* The frame that reads eight bytes at 0x16, and an answer: 123.45 W and 0 W. */
static void frames(void **state)
{
	static const uint8_t ask[] = { 0x41, 0x00, 0x16, 0x4e, 0x08 },
			     want[] = { 0xa5, 0x08, 0x41, 0x00, 0x16, 0x4e, 0x08, 0x5a };
	uint8_t frame[16], answer[11] = { 0x06, 0x0b, 0x39, 0x30, 0, 0, 0, 0, 0, 0, 0x7a };
	size_t n;

	meter_serial_frame(ask, sizeof(ask), frame, &n);
	assert_int_equal(n, sizeof(want));
	assert_memory_equal(frame, want, n);
	assert_int_equal(meter_serial_check(answer, 11, 8), 0);
	for (unsigned i = 0; i < 11; i++) {
		answer[i] ^= 1;
		assert_int_equal(meter_serial_check(answer, 11, 8), -EBADMSG);
		answer[i] ^= 1;
	}
	for (unsigned i = 0; i < 11; i++)
		assert_int_equal(meter_serial_check(answer, i, 8), -EBADMSG);
}

/* 57 W now, 56 to 59, over 1000 ms, measuring; then what is no power. */
static void dcmi(void **state)
{
	uint8_t a[] = { 0x00, 0xdc, 0x39, 0x00, 0x38, 0x00, 0x3b, 0x00, 0x39, 0x00,
			0xe3, 0x6f, 0x0a, 0x39, 0xe8, 0x03, 0x00, 0x00, 0x40 };
	int64_t uw = 0;

	assert_int_equal(meter_dcmi_decode(a, sizeof(a), &uw), 0);
	assert_int_equal(uw, 57000000);
	uw = -1;
	for (size_t n = 0; n < sizeof(a); n++)
		assert_int_equal(meter_dcmi_decode(a, n, &uw), -EBADMSG);
	a[18] = 0;
	assert_int_equal(meter_dcmi_decode(a, sizeof(a), &uw), -ENODATA);
	a[18] = 0x40;
	a[1] = 0xdd;
	assert_int_equal(meter_dcmi_decode(a, sizeof(a), &uw), -EBADMSG);
	a[0] = 0xc1; /* invalid command */
	assert_int_equal(meter_dcmi_decode(a, sizeof(a), &uw), -EIO);
	assert_int_equal(uw, -1);
	a[0] = 0;
	a[1] = 0xdc;
	a[3] = 0x10;
	assert_int_equal(meter_dcmi_decode(a, sizeof(a), &uw), 0);
	assert_int_equal(uw, (0x1000 + 57) * 1000000ll);
}

static int shelly(const char *text, int64_t *uw)
{
	return meter_shelly_parse(text, strlen(text), uw, 10);
}

static int tasmota(const char *text, int64_t *uw)
{
	return meter_tasmota_parse(text, strlen(text), uw, 10);
}

static void plugs(void **state)
{
	int64_t uw[10];

	assert_int_equal(shelly("{\"wifi_sta\":{},\"meters\":[{\"power\":12.34,\"total\":9},{\"power\":0}]}", uw), 2);
	assert_int_equal(uw[0], 12340000);
	assert_int_equal(uw[1], 0);
	assert_int_equal(shelly("{\"emeters\":[{\"power\":-5.5}],\"meters\":[{\"power\":1}]}", uw), 1);
	assert_int_equal(uw[0], -5500000);
	assert_int_equal(shelly("{\"id\":0,\"output\":true,\"apower\":8.9,\"aenergy\":{\"total\":6.5}}", uw), 1);
	assert_int_equal(uw[0], 8900000);
	assert_int_equal(
		shelly("{\"sys\":{},\"em1:0\":{\"id\":0,\"act_power\":100},\"em1:1\":{\"act_power\":200.5}}", uw), 2);
	assert_int_equal(uw[1], 200500000);
	assert_int_equal(
		tasmota("{\"StatusSNS\":{\"Time\":\"x\",\"ENERGY\":{\"Total\":3.1,\"Power\":42,\"Voltage\":230}}}", uw),
		1);
	assert_int_equal(uw[0], 42000000);
	assert_int_equal(tasmota("{\"StatusSNS\":{\"ENERGY\":{\"Power\":[1,2,3]}}}", uw), 3);
	assert_int_equal(tasmota("{\"StatusPWR\":{\"Power\":7}}", uw), 1);
}

/* A channel without a value does not hand its number to the next. */
static void holes(void **state)
{
	int64_t uw[10];

	assert_int_equal(shelly("{\"em:0\":{\"a_act_power\":1,\"b_act_power\":null,\"c_act_power\":3}}", uw), 3);
	assert_int_equal(uw[0], 1000000);
	assert_true(uw[1] == METER_NO_VALUE);
	assert_int_equal(uw[2], 3000000);
	assert_int_equal(shelly("{\"emeters\":[{\"power\":9,\"is_valid\":false},{\"power\":4,\"is_valid\":true}]}", uw),
			 2);
	assert_true(uw[0] == METER_NO_VALUE);
	assert_int_equal(uw[1], 4000000);
	assert_int_equal(shelly("{\"meters\":[{\"power\":9,\"is_valid\":false}]}", uw), -EBADMSG);
	assert_int_equal(tasmota("{\"StatusSNS\":{\"ENERGY\":{\"Power\":[1e308,\"x\",5]}}}", uw), 3);
	assert_true(uw[0] == METER_NO_VALUE && uw[1] == METER_NO_VALUE);
	assert_int_equal(uw[2], 5000000);
}

static void hostile_plugs(void **state)
{
	static const char *const bad[] = { "",
					   "null",
					   "[]",
					   "{",
					   "{}",
					   "\"apower\"",
					   "{\"apower\":\"12\"}",
					   "{\"apower\":null}",
					   "{\"meters\":[{}]}",
					   "{\"meters\":3}",
					   "{\"apower\":1e99}",
					   "<html>",
					   "{\"meters\":[{\"power\":true}]}",
					   "{\"StatusSNS\":{\"ENERGY\":{}}}",
					   "{\"StatusSNS\":[1]}",
					   "{\"StatusPWR\":7}" };
	char many[4096] = "{\"meters\":[", deep[4096];
	int64_t uw[10];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(shelly(bad[i], uw), -EBADMSG);
		assert_int_equal(tasmota(bad[i], uw), -EBADMSG);
	}
	for (unsigned i = 0; i < 100; i++)
		strcat(many, i ? ",{\"power\":1}" : "{\"power\":1}");
	strcat(many, "]}");
	assert_int_equal(shelly(many, uw), 10);
	memset(deep, '[', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(shelly(deep, uw), -EBADMSG);
}

static int redfish(const char *text, int64_t *uw)
{
	return meter_redfish_parse(text, strlen(text), uw);
}

/* Shapes of the schemas EnvironmentMetrics 1.3 and Power 1.7. */
static void redfishes(void **state)
{
	static const char *const bad[] = { "",
					   "[]",
					   "{",
					   "{}",
					   "{\"PowerWatts\":400}",
					   "{\"PowerWatts\":{}}",
					   "{\"PowerWatts\":{\"Reading\":\"400\"}}",
					   "{\"PowerWatts\":{\"Reading\":-1}}",
					   "{\"PowerWatts\":{\"Reading\":1e99}}",
					   "{\"PowerControl\":[]}",
					   "{\"PowerControl\":{\"PowerConsumedWatts\":5}}",
					   "{\"PowerControl\":[{},{\"PowerConsumedWatts\":5}]}" };
	int64_t uw = -1;

	assert_int_equal(
		redfish("{\"@odata.type\":\"#EnvironmentMetrics.v1_3_0.EnvironmentMetrics\",\"PowerWatts\":"
			"{\"DataSourceUri\":\"/redfish/v1/x\",\"Reading\":374.5},\"EnergykWh\":{\"Reading\":2}}",
			&uw),
		0);
	assert_int_equal(uw, 374500000);
	assert_int_equal(redfish("{\"PowerControl\":[{\"MemberId\":\"0\",\"PowerConsumedWatts\":344,"
				 "\"PowerCapacityWatts\":800},{\"PowerConsumedWatts\":1}]}",
				 &uw),
			 0);
	assert_int_equal(uw, 344000000);
	assert_int_equal(redfish("{\"PowerWatts\":{\"Reading\":null}}", &uw), -ENODATA);
	assert_int_equal(redfish("{\"PowerControl\":[{\"PowerConsumedWatts\":null}]}", &uw), -ENODATA);
	assert_int_equal(redfish("{\"PowerWatts\":{\"Reading\":0}}", &uw), -ENODATA); /* not measured */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(redfish(bad[i], &uw), -EBADMSG);
	assert_int_equal(uw, 344000000);
}

/* 100 W for 10 s, then a hole of a minute, then 50 W for 2 s. */
static void energy(void **state)
{
	struct meter_energy e = { 0 };
	uint64_t t;

	for (t = 0; t <= 10000; t += 20)
		meter_energy_add(&e, 100000000, t * NS_PER_MS, 3 * NS_PER_S);
	assert_int_equal(e.uj, 1000000000);
	for (t = 70000; t <= 72000; t += 1000)
		meter_energy_add(&e, 50000000, t * NS_PER_MS, 3 * NS_PER_S);
	assert_int_equal(e.uj, 1100000000);
	assert_int_equal(e.gaps, 1);
	meter_energy_add(&e, -50000000, 73000 * NS_PER_MS, 3 * NS_PER_S);
	meter_energy_add(&e, -50000000, 74000 * NS_PER_MS, 3 * NS_PER_S);
	assert_int_equal(e.uj, 1100000000); /* fed back */
	meter_energy_add(&e, 1, 74000 * NS_PER_MS, 3 * NS_PER_S);
	assert_int_equal(e.power_uw, -50000000); /* the same instant again */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines),         cmocka_unit_test(no_lines),  cmocka_unit_test(frames),
		cmocka_unit_test(dcmi),          cmocka_unit_test(plugs),     cmocka_unit_test(holes),
		cmocka_unit_test(hostile_plugs), cmocka_unit_test(redfishes), cmocka_unit_test(energy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
