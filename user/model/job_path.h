/* SPDX-License-Identifier: Apache-2.0 */
/* Batch jobs by the paths of their cgroups (docs/formats/names.md): those of Slurm's plugins cgroup/v2 and cgroup/v1,
 * below slices or at the top, where root alone makes cgroups. */
#ifndef JD_JOB_PATH_H
#define JD_JOB_PATH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_ID_MAX 10 /* digits of a job's number, 32 bits */
#define JOB_STEP_MAX 32 /* a number, batch, extern, interactive; 0+1 of a heterogeneous job */
#define JOB_NO_USER UINT32_MAX

struct job_path {
	char id[JOB_ID_MAX + 1], step[JOB_STEP_MAX + 1]; /* step "" = none, or none that can be named */
	uint32_t user; /* JOB_NO_USER: the path does not tell (v2) */
	size_t above, end; /* bytes of the path before the job's component, and with that of its step */
};

/* True when the cgroup is a job's or is in one. Else *ret is undefined. */
bool job_path_parse(const char *path, struct job_path *ret);
#define JOB_NAME_MAX (JOB_ID_MAX + JOB_STEP_MAX + 2)
/* Writes JOB.STEP, or JOB where there is no step. */
void job_path_name(const struct job_path *p, char dst[JOB_NAME_MAX]);
/* True for the number of a job: 32 bits, no zero in front. */
bool job_id_ok(const char *text);

#endif
