/* SPDX-License-Identifier: Apache-2.0 */
/* Finds kafka.so: beside the program, as in a build folder, or where the package put it. */
#ifndef JD_KAFKA_LOAD_H
#define JD_KAFKA_LOAD_H
#include "base/err.h"
#include "kafka_plugin.h"

/* The functions, loaded at the first call and kept. Main thread. 0, or -ENOENT or -EINVAL with err. */
int kafka_load(const struct kafka_plugin **ret, struct err *err);

#endif
