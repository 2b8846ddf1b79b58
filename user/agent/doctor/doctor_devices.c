// SPDX-License-Identifier: Apache-2.0
/* jouled doctor: GPUs, and the answer of each configured meter. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "source/guest/guests.h"
#include "doctor.h"
#include "agent/machine/machine.h"

#define HOST_WAIT_NS (5 * NS_PER_S)
#define METER_WAIT_NS (15 * NS_PER_S) /* for the first values: Redfish asks six times or more before it has one */

static void tell_gpus(struct machine *m)
{
	char what[80], text[480];

	for (unsigned i = 0; i < gpus_count(m->gpus); i++) {
		struct gpu_desc d;

		gpus_desc(m->gpus, i, &d);
		snprintf(what, sizeof(what), "gpu-%u", i);
		doctor_line(what, "ok", "%s %s: %s", d.vendor, *d.uuid ? d.uuid : d.pci,
			    m->schema.domains[d.domain].reason);
		for (enum gpu_field f = 0; f < GPU_FIELDS; f++)
			if (!(d.fields & GPU_BIT(f)) && f != GPU_TOTAL_ENERGY)
				doctor_line("  column", "absent", "%s: this GPU does not tell it", gpu_field_column(f));
	}
	while (gpus_next_warning(m->gpus, text, sizeof(text)))
		doctor_line("gpu", "broken", "%s", text);
	if (!gpus_count(m->gpus))
		doctor_line("gpu", "absent", "none that tells its power");
}

/* Whether psys holds disks and networks (docs/wall.md). */
static void tell_psys(const struct wall_figures *f)
{
	if (!f->psys)
		return;
	if (!f->psys_ready)
		doctor_line("  psys", "learning", "%llu points; whether it holds disks and networks is not known yet",
			    (unsigned long long)f->psys_points);
	else if (!f->n_psys_prices)
		doctor_line("  psys", "ok", "%llu points; work of disks and networks was not found in it",
			    (unsigned long long)f->psys_points);
	for (unsigned i = 0; i < f->n_psys_prices; i++)
		doctor_line("  psys", "ok", "holds %s: %.4g W for each unit (docs/wall.md)", f->psys_prices[i].name,
			    f->psys_prices[i].watts);
}

static void tell_wall(struct machine *m)
{
	struct wall_figures f;
	char text[480];

	if (!m->wall)
		return;
	while (wall_next_warning(m->wall, text, sizeof(text)))
		doctor_line("wall", "broken", "%s", text);
	wall_figures(m->wall, &f);
	doctor_line("wall", f.state, "%s", f.reason);
	for (unsigned i = 0; i < f.n_prices; i++)
		doctor_line("  price", "ok", "%s: %.4g W for each unit (docs/wall.md), seen %.4g to %.4g",
			    f.prices[i].name, f.prices[i].watts, f.prices[i].low, f.prices[i].high);
	tell_psys(&f);
}

static void tell_meters(struct machine *m, const struct meters_config *c)
{
	uint64_t until = clock_mono_ns() + METER_WAIT_NS;
	unsigned first = m->schema.n_domains - c->n - (m->wall != NULL);
	char what[80], text[480];

	if (meters_start(m->meters))
		return;
	while (!meters_settled(m->meters) && clock_mono_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 50 * NS_PER_MS }, NULL);
	for (unsigned i = 0; i < c->n; i++) {
		unsigned n = meters_values(m->meters, first + i);

		snprintf(what, sizeof(what), "meter %u", i);
		doctor_line(what, n ? "ok" : "absent", "%s %s: %u channel%s with values", c->v[i].type,
			    m->schema.domains[first + i].id, n, n == 1 ? "" : "s");
	}
	while (meters_next_warning(m->meters, text, sizeof(text)))
		doctor_line("  note", "", "%s", text);
}

static void tell_guest(struct guests *g, uint32_t cid)
{
	struct err err = { 0 };
	char path[4096];
	int rc = guests_find(g, cid, path, sizeof(path), &err);

	if (rc)
		doctor_line("  guest", "denied", "%s", err.text);
	else
		doctor_line("  guest", "ok", "CID %u is %.400s", cid, path);
}

/* Reports the guests of an output to vsock-listen, and the data that each would get. */
static void tell_guests(const struct machine_config *c)
{
	struct err err = { 0 };
	struct guests *g;
	uint32_t cid;
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		doctor_line("vsock", "absent", "%s; load vhost_vsock, or use unix-listen and a virtio-serial port",
			    strerror(errno));
		return;
	}
	close(fd);
	if (guests_open(c->root, c->cgroups.hierarchy, &g, &err)) {
		doctor_line("vsock", "broken", "%s", err.text);
		return;
	}
	doctor_line("vsock", "ok", "%s",
		    guests_claimed(g, 0) ? "guests by the command lines here:" : "no process here has a guest-cid");
	for (unsigned i = 0; (cid = guests_claimed(g, i)); i++)
		tell_guest(g, cid);
	guests_close(g);
}

void doctor_tell_host(struct machine *m, const char *host)
{
	const struct host_options o = { .root = m->root, .place = host, .wait_ns = HOST_WAIT_NS };
	struct err err = { 0 };
	int rc = host_open(&o, &m->schema, &m->host, &err);

	if (rc)
		doctor_line("host", rc == -EACCES || rc == -EPERM ? "denied" : "absent", "%s", err.text);
	else
		doctor_line("host", "ok", "%s tells %u domain%s of this machine's share", host, m->schema.n_domains,
			    m->schema.n_domains == 1 ? "" : "s");
}

void doctor_tell_devices(struct machine *m, const struct config *c)
{
	struct err err = { 0 };

	if (machine_open_devices(m, &c->machine, &err)) {
		doctor_line("gpu", "broken", "%s", err.text);
		return;
	}
	if (strcmp(c->machine.gpu.mode, "none") != 0)
		tell_gpus(m);
	if (c->machine.meters.n)
		tell_meters(m, &c->machine.meters);
	tell_wall(m);
	for (unsigned i = 0; i < c->outputs.n; i++) {
		if (strncmp(c->outputs.v[i].to, "vsock-listen://any:", 19) == 0) {
			tell_guests(&c->machine);
			break;
		}
	}
}
