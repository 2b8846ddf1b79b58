/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_LIMITS_H
#define FAKE_LIMITS_H

struct fake_limits {
	unsigned power_mw, mem_mhz, gpu_mhz;
};

struct fake_limits fake_limits_of(int gpu);

#endif
