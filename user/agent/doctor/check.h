/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a configuration beyond its syntax. Nothing of the machine is changed, no output is opened. */
#ifndef JD_CHECK_H
#define JD_CHECK_H
#include "base/err.h"
#include "model/config/config.h"

/* The outputs only. 0, or -EINVAL with err. */
int check_outputs(const struct config *c, struct err *err);
/* Outputs, places and events. 0, or -EINVAL with err; another errno when the machine cannot be examined. */
int check_config(const struct config *c, struct err *err);

#endif
