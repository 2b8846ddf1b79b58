/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_outputs.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "agent/plan/plan.h"
#include "base/log.h"
#include "base/text.h"
#include "encode/pack.h"
#include "model/config/formats.h"
#include "profile/pprof_sum.h"

#define OWN_MAX ((size_t)24 << 20)

static bool admits(void *arg, const char *cgroup)
{
	return selection_admits(arg, cgroup);
}

static bool is_otlp(const struct output *o)
{
	return output_format_find(o->config.format)->otlp_profiles;
}

/* What an output with patterns or a form of its own gets. */
static int make_own(const struct plan *plan, const struct output *o, const struct buf *all, struct buf *plain)
{
	struct selection_rules rules = config_rules(&plan->config->machine.cgroups);
	const struct pprof_filter f = { .admits = admits, .arg = &rules };
	struct pprof_sum *sum = pprof_sum_new(OWN_MAX);
	int rc;

	rules.of_output = o->config.cgroups.v;
	rules.n_of_output = o->config.cgroups.n;
	rc = sum ? pprof_sum_add(sum, all->data, all->len, &f) : -ENOMEM;

	if (!rc)
		rc = is_otlp(o) ? pprof_sum_otlp(sum, plan->config->machine.sensor, plain) :
				  pprof_sum_write(sum, plain);
	pprof_sum_free(sum);
	return rc;
}

static int write_file(const struct output *o, const struct buf *packed, const struct chunk_file *c)
{
	const int dir = open(output_directory(o), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	char name[CHUNK_NAME_MAX];
	int rc;

	if (dir < 0)
		return -errno;
	chunk_file_name(c, name);
	rc = chunk_file_write(dir, name, packed->data, packed->len);
	close(dir);
	return rc;
}

struct chunk {
	const struct buf *plain, *packed;
	const struct chunk_file *file;
	uint64_t energy_uj;
	bool changed;
};

static int send_to(const struct plan *plan, struct output *o, const struct chunk *c)
{
	const bool own_one = c->changed || o->config.cgroups.n || is_otlp(o);
	struct packer packer = { 0 };
	struct buf own = { 0 }, zipped = { 0 };
	int rc = own_one ? make_own(plan, o, c->plain, &own) : 0;

	if (!own_one && o->push) {
		buf_add(&own, c->plain->data, c->plain->len);
		rc = own.failed ? -ENOMEM : 0;
	}
	if (!rc && o->push)
		push_output_submit(o->push, &own, c->energy_uj);
	else if (!rc && own_one)
		rc = pack(&packer, PACK_GZIP, own.data, own.len, &zipped);
	if (!rc && !o->push)
		rc = write_file(o, own_one ? &zipped : c->packed, c->file);
	packer_fini(&packer);
	buf_free(&own);
	buf_free(&zipped);
	return rc;
}

void profile_outputs_send(const struct plan *plan, const struct buf *plain, const struct buf *packed,
			  const struct chunk_file *c, uint64_t energy_uj, bool changed)
{
	const struct chunk chunk = { plain, packed, c, energy_uj, changed };

	for (struct output *o = plan ? plan->outputs : NULL; o; o = o->next) {
		int rc;

		if (!output_takes_profiles(&o->config))
			continue;
		rc = send_to(plan, o, &chunk);
		if (!rc)
			continue;
		o->parts[0].unmade++;
		log_warn("output %.*s: a minute is lost: %s; %s", TEXT_SUBJECT(o->config.to), strerror(-rc),
			 err_write_remedy(-rc));
	}
}
