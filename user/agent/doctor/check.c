/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "agent/machine/machine.h"
#include "agent/output/output.h"
#include "encode/metrics/series.h"
#include "check.h"

int check_outputs(const struct config *c, struct err *err)
{
	const struct output_context context = output_context_of(c, NULL, NULL);
	struct err why = { 0 };

	for (unsigned i = 0; i < c->outputs.n; i++) {
		const struct output_config *oc = &c->outputs.v[i];

		if (output_check(oc, &context, &why) == 0)
			continue;
		if (oc->line)
			return err_set(err, -EINVAL, "%s:%u: %s", c->program.file, oc->line, why.text);
		return err_set(err, -EINVAL, "%s", why.text);
	}
	return 0;
}

/* libbpf accepts raw type information (linux/btf.h) or an ELF file with it. For other files it only reports
 * EIO. */
static int check_btf(const struct machine *m, const char *btf, struct err *err)
{
	unsigned char magic[4] = { 0 };
	int fd = btf && fsroot_is_live(m->root) ? fsroot_openat(m->root, btf, O_RDONLY) : -EAGAIN, rc;

	if (fd == -EAGAIN)
		return 0;
	if (fd < 0)
		return err_set(err, -EINVAL, "--btf %s: %s; give a file with the BTF of this kernel", btf,
			       strerror(-fd));
	rc = (int)read(fd, magic, sizeof(magic));
	close(fd);
	if (rc == (int)sizeof(magic) && (memcmp(magic,
						"\x7f"
						"ELF",
						4) == 0 ||
					 memcmp(magic, "\x9f\xeb", 2) == 0))
		return 0;
	return err_set(err, -EINVAL, "--btf %s: neither BTF nor ELF; give a file with the BTF of this kernel", btf);
}

/* Groups of names need names. */
static int check_names(const struct config *c, const char *by, const char *what, struct err *err)
{
	const struct grouping g = config_grouping(by);

	if (c->machine.cgroups.names != NAMES_OFF || c->program.replay || !grouping_by_names(&g))
		return 0;
	return err_set(
		err, -EINVAL,
		"%s: by: %s needs the names of cgroups, and cgroups.names is off; write names: auto or by: slice", what,
		by);
}

/* The machine is not known yet; what it adds to the page is found when the agent starts. */
static int check_metrics(const struct config *c, struct err *err)
{
	struct totals_options o = { 0 };
	struct schema *s = calloc(1, sizeof(*s));
	struct err why = { 0 };
	int rc = check_names(c, c->serving.metrics.by, "metrics", err);

	for (unsigned i = 0; i < c->outputs.n && !rc; i++)
		rc = check_names(c, c->outputs.v[i].by, c->outputs.v[i].to, err);
	if (!rc && !s)
		rc = err_set(err, -ENOMEM, "metrics: out of memory; free some");
	if (!rc && totals_fit(&o, s, c->serving.metrics.max_series, SERIES_SELF, &why) != 0)
		rc = err_set(err, -EINVAL, "metrics.%s", why.text);
	free(s);
	return rc;
}

int check_config(const struct config *c, struct err *err)
{
	struct machine *m = NULL;
	int rc = check_outputs(c, err);

	if (!rc)
		rc = check_metrics(c, err);
	if (rc)
		return rc;
	if (machine_enter(c->machine.root, &m, err) != 0)
		return -EINVAL; /* --root is not the directory of a machine */
	rc = check_btf(m, c->machine.btf, err);
	if (!rc)
		rc = machine_look(m, c, err);
	machine_close(m);
	return rc == -E2BIG ? -EINVAL : rc;
}
