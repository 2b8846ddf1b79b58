/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "../base/log.h"
#include "app.h"
#include "machine.h"
#include "output.h"

static int check_outputs(const struct config *c, struct err *err)
{
	struct err why = { 0 };

	for (unsigned i = 0; i < c->n_outputs; i++) {
		const struct output_config *oc = &c->outputs[i];

		if (output_check(oc, c, &why) == 0)
			continue;
		if (oc->line)
			return err_set(err, -EINVAL, "%s:%u: %s", c->config_path, oc->line, why.text);
		return err_set(err, -EINVAL, "%s", why.text);
	}
	return 0;
}

/* libbpf takes raw type information (linux/btf.h) or an ELF file that has it, and of others only says EIO. */
static int check_btf(const struct machine *m, const struct config *c, struct err *err)
{
	unsigned char magic[4] = { 0 };
	int fd = c->btf && fsroot_is_live(m->root) ? fsroot_openat(m->root, c->btf, O_RDONLY) : -EAGAIN, rc;

	if (fd == -EAGAIN)
		return 0;
	if (fd < 0)
		return err_set(err, -EINVAL, "--btf %s: %s; give a file with the BTF of this kernel", c->btf,
			       strerror(-fd));
	rc = (int)read(fd, magic, sizeof(magic));
	close(fd);
	if (rc == (int)sizeof(magic) && (memcmp(magic,
						"\x7f"
						"ELF",
						4) == 0 ||
					 memcmp(magic, "\x9f\xeb", 2) == 0))
		return 0;
	return err_set(err, -EINVAL, "--btf %s: neither BTF nor ELF; give a file with the BTF of this kernel", c->btf);
}

int check_config(const struct config *c, struct err *err)
{
	struct machine *m = NULL;
	int rc = check_outputs(c, err);

	if (rc)
		return rc;
	if (machine_enter(c, &m, err) != 0)
		return -EINVAL; /* --root names no machine */
	rc = check_btf(m, c, err);
	if (!rc)
		rc = machine_look(m, c, err);
	machine_close(m);
	return rc == -E2BIG ? -EINVAL : rc;
}

int check_run(const struct config *c)
{
	struct err err = { 0 };
	int rc = check_config(c, &err);

	if (!rc)
		return EXIT_OK;
	log_error("%s", err.text);
	return rc == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}
