// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "config.h"

int str_list_copy(const struct str_list *from, struct str_list *ret)
{
	*ret = (struct str_list){ .v = calloc(from->n + 1, sizeof(*ret->v)) };
	if (!ret->v)
		return -ENOMEM;
	for (; ret->n < from->n; ret->n++)
		if (!(ret->v[ret->n] = strdup(from->v[ret->n])))
			return -ENOMEM;
	return 0;
}

void str_list_free(struct str_list *list)
{
	for (unsigned i = 0; i < list->n; i++)
		free(list->v[i]);
	free(list->v);
	free(list->line);
	*list = (struct str_list){ 0 };
}
