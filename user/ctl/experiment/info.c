/* SPDX-License-Identifier: Apache-2.0 */
/* system_info.json: the keys of the original in their order, then those of jouled. A value that is not known is null,
 * never a guess: readers accept any JSON object. */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "base/clock.h"
#include "model/reading.h"
#include "record.h"

static json_t *text_or_null(const char *s)
{
	json_t *v = *s ? json_string(s) : NULL;

	return v ? v : json_null();
}

/* Adds the keys of the GPU. CUDA version 12020 is 12.2 (nvmlSystemGetCudaDriverVersion). */
static void put_gpu(json_t *o, const struct gpu_desc *d)
{
	bool cuda = d && d->cuda_version > 0, capable = d && d->cuda_major > 0;

	json_object_set_new(o, "device_name", d ? text_or_null(d->name) : json_null());
	json_object_set_new(o, "cuda_capability",
			    capable ? json_pack("[i,i]", d->cuda_major, d->cuda_minor) : json_null());
	json_object_set_new(o, "driver_version", d ? text_or_null(d->driver_version) : json_null());
	json_object_set_new(o, "cuda_version",
			    cuda ? json_pack("[i,i]", d->cuda_version / 1000, d->cuda_version % 1000 / 10) :
				   json_null());
	json_object_set_new(o, "nvml_version", d ? text_or_null(d->nvml_version) : json_null());
}

/* Takes a line of os-release(5): KEY=value, quoted or not. */
static void take_release(json_t *o, char *line)
{
	static const char *const keys[][2] = {
		{ "NAME=", "distributor_id" },
		{ "PRETTY_NAME=", "description" },
		{ "VERSION_ID=", "release" },
		{ "VERSION_CODENAME=", "codename" },
	};
	char *value, *end;

	for (unsigned i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (strncmp(line, keys[i][0], strlen(keys[i][0])) != 0)
			continue;
		value = line + strlen(keys[i][0]);
		end = value + strlen(value);
		while (end > value && isspace((unsigned char)end[-1]))
			*--end = '\0';
		if (end - value >= 2 && (*value == '"' || *value == '\'') && end[-1] == *value) {
			*--end = '\0';
			value++;
		}
		json_object_set_new(o, keys[i][1], text_or_null(value));
	}
}

static json_t *distro(void)
{
	json_t *o = json_object();
	FILE *f = fopen("/etc/os-release", "re");
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		take_release(o, line);
	if (f)
		fclose(f);
	return o;
}

static void put_system(json_t *o)
{
	struct utsname u;

	uname(&u);
	json_object_set_new(o, "platform", text_or_null(u.sysname));
	json_object_set_new(o, "os_release", text_or_null(u.release));
	json_object_set_new(o, "os_version", text_or_null(u.version));
	json_object_set_new(o, "machine", text_or_null(u.machine));
	json_object_set_new(o, "distro", distro());
	json_object_set_new(o, "python_version", json_null()); /* the recorder does not use Python */
	json_object_set_new(o, "pip_packages", json_array());
}

/* Returns the source of total_power_samples.csv; "" = there is no such file. */
static const char *samples_from(const struct record_plan *plan, const struct record_devices *devices,
				const struct record_out *out, bool done)
{
	if (done && !recorder_rows(out->rec, RECORDER_POWER_SAMPLES))
		return "";
	if (plan->samples_from != SAMPLES_GPU)
		return plan->samples_from == SAMPLES_RAPL ? "rapl" : "cgroup";
	if (out->gpu < 0)
		return "";
	if (out->polled[GPU_RING_POWER] || !(devices->gpu[out->gpu].rings >> GPU_RING_POWER & 1))
		return "polling";
	return "nvml";
}

static void put_sampling(json_t *o, const struct record_plan *plan, const struct record_devices *devices,
			 const struct record_out *out, const char *from)
{

	json_object_set_new(o, "jouled_version", json_string(JOULED_VERSION));
	json_object_set_new(o, "external_unit",
			    devices->n_channels ? json_string(plan->external_uw == 1000 ? "mW" : "10mW") : json_null());
	json_object_set_new(o, "power_samples_from", text_or_null(from));
	if (out->gpu < 0)
		json_object_set_new(
			o, "gpu",
			json_string(
				*from ? "none: gpu-power.csv is missing, and total_power_samples.csv is not of a GPU" :
					"none: gpu-power.csv and total_power_samples.csv are missing"));
	else
		json_object_set_new(o, "gpu",
				    text_or_null(devices->gpu[out->gpu].uuid[0] ? devices->gpu[out->gpu].uuid :
										  devices->gpu[out->gpu].pci));
	json_object_set_new(o, "gpu_every_ns",
			    out->gpu < 0 ? json_null() : json_integer((json_int_t)plan->gpu_every_ns));
	json_object_set_new(o, "reading_every_ns", json_integer((json_int_t)plan->reading_every_ns));
}

static void put_agent(json_t *o, const struct run_agent *with)
{
	json_object_set_new(o, "formula", text_or_null(with->facts.formula));
	json_object_set_new(o, "idle", text_or_null(with->facts.idle));
	json_object_set_new(o, "agent", json_string(with->own ? "private" : "running"));
}

static void put_meters(json_t *o, const struct record_devices *devices)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < devices->n_channels; i++) {
		const struct meter_desc *d = &devices->channel[i];
		char column[8];

		snprintf(column, sizeof(column), "d%uc%u", d->device % 10u, d->channel % 10u);
		json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:I}", "column", column, "type", d->type, "label",
						      d->label, "every_ns", (json_int_t)d->pace_ns));
	}
	json_object_set_new(o, "meters", list);
}

static void put_setting(json_t *o, const struct record_setting *set)
{
	bool clocks = set && set->mem_mhz;

	json_object_set_new(o, "power_limit_mw", set && set->power_mw ? json_integer(set->power_mw) : json_null());
	json_object_set_new(o, "app_clocks_mhz",
			    clocks ? json_pack("[i,i]", (int)set->mem_mhz, (int)set->gpu_mhz) : json_null());
}

static void put_command(json_t *o, char *const *argv)
{
	json_t *list = json_array();

	for (; argv && *argv; argv++) {
		json_t *word = json_string(*argv);

		json_array_append_new(list, word ? word : json_null()); /* JSON cannot hold a word that is not UTF-8 */
	}
	json_object_set_new(o, "command", list);
}

/* Returns the worst quality of each domain in the repetition. */
static json_t *qualities(const struct run_facts *f, const struct record_out *out, enum recorder_table t,
			 const unsigned *quality)
{
	json_t *o = json_object();

	for (unsigned d = 0; d < f->n_domains; d++)
		if (record_has_domain(f, out, t, d))
			json_object_set_new(o, f->domain[d].name, json_string(quality_name(quality[d])));
	return o;
}

/* A silence of at most two seconds or five rows does not count, as in joulectl check. */
int64_t record_silent_ns(const struct record_plan *plan, const struct record_out *out, const struct record_result *r)
{
	int64_t since_ns = out->last_power_ns > r->begin_ns ? out->last_power_ns : r->begin_ns;
	int64_t ns = r->end_ns - since_ns, rows_ns = 5 * (int64_t)plan->gpu_every_ns;

	return out->gpu >= 0 && ns > 2 * (int64_t)NS_PER_S && ns > rows_ns ? ns : 0;
}

static void put_outcome(json_t *o, const struct record_plan *plan, const struct record_out *out,
			const struct record_result *r)
{
	const struct record_figures *f = &r->figures;

	json_object_set_new(o, "complete", json_boolean(!r->failed.code && !r->interrupted));
	json_object_set_new(o, "exit_status", json_integer(run_exit_status(&r->end)));
	json_object_set_new(o, "wall_ns", json_integer((json_int_t)r->end.wall_ns));
	json_object_set_new(o, "energy_quality", qualities(&f->facts, out, RECORDER_CGROUP, f->quality));
	json_object_set_new(o, "machine_quality", qualities(&f->facts, out, RECORDER_RAPL, f->machine_quality));
	json_object_set_new(o, "counters_quality", json_string(quality_name(f->counts_quality)));
	json_object_set_new(o, "gpu_silent_ns",
			    out->gpu < 0 ? json_null() : json_integer((json_int_t)record_silent_ns(plan, out, r)));
	json_object_set_new(o, "gpu_rows_dropped", json_integer((json_int_t)recorder_gpu_dropped(out->rec)));
	json_object_set_new(o, "samples_missed", json_integer((json_int_t)r->samples_missed));
	json_object_set_new(o, "readings_failed", json_integer((json_int_t)f->failed));
	json_object_set_new(o, "marks_refused", json_integer((json_int_t)r->marks_refused));
	json_object_set_new(o, "epoch_closed", r->epoch_closed < 0 ? json_null() : json_integer(r->epoch_closed));
}

void record_info_put(const struct record_job *job, const struct run_agent *with, const struct record_devices *devices,
		     struct record_out *out, const struct record_result *r)
{
	const struct record_plan *plan = job->plan;
	json_t *o = json_object();
	char *text;

	put_gpu(o, out->gpu < 0 ? NULL : &devices->gpu[out->gpu]);
	put_system(o);
	json_object_set_new(o, "effective_power_limit", out->limit_mw >= 0 ? json_integer(out->limit_mw) : json_null());
	put_sampling(o, plan, devices, out, samples_from(plan, devices, out, r != NULL));
	put_agent(o, with);
	put_meters(o, devices);
	put_setting(o, job->setting);
	put_command(o, plan->command);
	if (r)
		put_outcome(o, plan, out, r);
	else
		json_object_set_new(o, "complete", json_false());
	text = json_dumps(o, JSON_ENSURE_ASCII | JSON_INDENT(2));
	json_decref(o);
	if (text)
		recorder_put(out->rec, "system_info.json", text, strlen(text));
	free(text);
}
