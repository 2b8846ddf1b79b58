/* SPDX-License-Identifier: Apache-2.0 */
/* joulectl: everything a person types. */
#include "../base/log.h"
#include "verb.h"

int main(int argc, char **argv)
{
	log_init("joulectl", LOG_LVL_WARN);
	return verb_main(argc, argv);
}
