/* SPDX-License-Identifier: Apache-2.0 */
/* Any answer in place of the kubelet's, in pieces of any size; the first byte is their size. Names that come out are fit
 * to print, and the pieces make no difference. */
#include <stdlib.h>
#include <string.h>

#include "source/names/pod_list.h"

static int read_all(struct kubelet_table *t, const uint8_t *data, size_t size, size_t piece)
{
	struct kubelet_reader r = { .table = t };
	int rc = 0, end;

	for (size_t at = 0; at < size && !rc; at += piece)
		rc = kubelet_read(&r, (const char *)data + at, size - at < piece ? size - at : piece);
	end = kubelet_read_end(&r);
	return rc ? rc : end;
}

static void check(const struct kubelet_table *t)
{
	for (uint32_t i = 0; i < t->n_pods; i++) {
		const struct kubelet_pod *p = &t->pods[i];

		if (!name_text_ok((const char *)t->text.data + p->space) ||
		    !name_text_ok((const char *)t->text.data + p->name))
			abort();
	}
	for (uint32_t i = 0; i < t->n_containers; i++) {
		const struct kubelet_container *c = &t->containers[i];

		if (c->pod >= t->n_pods || strlen(c->id) != KUBELET_ID_LEN ||
		    !name_text_ok((const char *)t->text.data + c->name))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kubelet_table t = { 0 }, whole = { 0 };
	int a, b;

	if (size < 2)
		return 0;
	a = read_all(&t, data + 1, size - 1, 1u + data[0]);
	b = read_all(&whole, data + 1, size - 1, size);
	check(&t);
	if (a != b || t.n_pods != whole.n_pods || t.n_containers != whole.n_containers || t.text.len != whole.text.len)
		abort();
	kubelet_table_free(&t);
	kubelet_table_free(&whole);
	return 0;
}
