// SPDX-License-Identifier: Apache-2.0
/* One request to the kubelet, as names ask it. */
#include <errno.h>
#include "../source/kubelet.h"
#include "doctor.h"

void doctor_tell_kubelet(const struct machine *m, const struct config *c)
{
	const struct kubelet_options o = { m->root, c->kubelet, c->kubelet_token_file, c->kubelet_ca_file,
					   c->kubelet_insecure };
	struct err err = { 0 };
	struct kubelet *k;
	int n;

	if (!c->kubelet)
		return;
	if (c->cgroups_names == NAMES_OFF) {
		doctor_line("kubelet", "absent", "cgroups.names: off");
		return;
	}
	if (kubelet_open(&o, &k) != 0)
		return;
	n = kubelet_ask(k, &err);
	if (n < 0)
		doctor_line("kubelet", n == -EACCES || n == -EKEYREJECTED ? "denied" : "absent", "%s", err.text);
	else
		doctor_line("kubelet", "ok", "%s: %d pods%s", c->kubelet, n,
			    c->kubelet_insecure ? ", its certificate not checked" : "");
	kubelet_close(k);
}
