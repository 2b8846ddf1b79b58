/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "agent/machine/machine.h"
#include "agent/output/output.h"
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

int check_config(const struct config *c, struct err *err)
{
	struct machine *m = NULL;
	int rc = check_outputs(c, err);

	if (rc)
		return rc;
	if (machine_enter(c->machine.root, &m, err) != 0)
		return -EINVAL; /* --root is not the directory of a machine */
	rc = check_btf(m, c->machine.btf, err);
	if (!rc)
		rc = machine_look(m, &c->machine, err);
	machine_close(m);
	return rc == -E2BIG ? -EINVAL : rc;
}
