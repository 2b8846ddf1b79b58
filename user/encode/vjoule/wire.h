/* SPDX-License-Identifier: Apache-2.0 */
/* vJoule records (docs/formats/vjoule.md), from given identifiers, names and values.
 * All numbers are little endian and unaligned. The length does not count itself:
 *
 *	record            i32 length, payload
 *	entry             i16 id, i32 len, name
 *	document header   i32 n, n entries
 *	         report   f32 pp0 pp1 pkg dram psys; i32 s, s metrics; i32 c, c cgroups
 *	         metric   i16 id, i64 value
 *	v0.2     header   i32 cpus, u8 simulation, f32 pmin pmoy pmax, i32 0; i32 n, n entries
 *	         report   f32 pp0 pp1 pkg dram psys, u32 millidegrees; i32 f, f x i32 kHz;
 *	                  i32 s, s metrics; i16 c, c cgroups
 *	         metric   i16 id, 6 zeros, i64 value
 *	cgroup            i32 len, name; i32 m, m metrics
 *
 * The writers take a pointer to enough room (see the _size functions) and return the end of what they wrote. */
#ifndef JD_VJOULE_WIRE_H
#define JD_VJOULE_WIRE_H
#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum vjoule_dialect { VJOULE_DOCUMENT, VJOULE_V02 };
enum { VJOULE_PP0, VJOULE_PP1, VJOULE_PKG, VJOULE_DRAM, VJOULE_PSYS, VJOULE_ENERGIES };

struct vjoule_entry {
	int16_t id;
	uint32_t len;
	const char *name;
};

struct vjoule_header {
	uint32_t cpus; /* v0.2 */
	uint32_t n;
	const struct vjoule_entry *entries;
};

struct vjoule_metric {
	int16_t id;
	int64_t value;
};

/* The part of a report before its cgroups. */
struct vjoule_machine {
	float energy_j[VJOULE_ENERGIES];
	uint32_t temperature_mc; /* v0.2, with the frequencies */
	uint32_t n_khz;
	const uint32_t *khz;
	uint32_t n_system;
	const struct vjoule_metric *system;
};

struct vjoule_cgroup {
	const char *name;
	uint32_t len;
	uint32_t n;
	const struct vjoule_metric *metrics;
};

/* Bytes of a header record, with its length field. */
size_t vjoule_header_size(enum vjoule_dialect d, const struct vjoule_header *h);
uint8_t *vjoule_put_header(uint8_t *p, enum vjoule_dialect d, const struct vjoule_header *h);
/* Bytes of a report record without cgroups, with its length field; vjoule_cgroup_size says what each cgroup
 * adds. */
size_t vjoule_machine_size(enum vjoule_dialect d, const struct vjoule_machine *m);
/* size: bytes of the whole record. The caller puts the cgroups after it. */
uint8_t *vjoule_put_machine(uint8_t *p, enum vjoule_dialect d, const struct vjoule_machine *m, size_t size,
			    uint32_t n_cgroups);

static inline size_t vjoule_metric_size(enum vjoule_dialect d)
{
	return d == VJOULE_DOCUMENT ? 10 : 16;
}

static inline size_t vjoule_cgroup_size(enum vjoule_dialect d, size_t len, size_t n)
{
	return 8 + len + n * vjoule_metric_size(d);
}

static inline uint8_t *vjoule_put_u16(uint8_t *p, uint16_t v)
{
	v = htole16(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint8_t *vjoule_put_u32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint8_t *vjoule_put_u64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

static inline uint8_t *vjoule_put_metrics(uint8_t *p, enum vjoule_dialect d, const struct vjoule_metric *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		/* v0.2 has its padding after the identifier: one store writes both */
		if (d == VJOULE_V02)
			p = vjoule_put_u64(p, (uint16_t)m[i].id);
		else
			p = vjoule_put_u16(p, (uint16_t)m[i].id);
		p = vjoule_put_u64(p, (uint64_t)m[i].value);
	}
	return p;
}

static inline uint8_t *vjoule_put_cgroup(uint8_t *p, enum vjoule_dialect d, const struct vjoule_cgroup *c)
{
	p = vjoule_put_u32(p, c->len);
	memcpy(p, c->name, c->len);
	p = vjoule_put_u32(p + c->len, c->n);
	return vjoule_put_metrics(p, d, c->metrics, c->n);
}

#endif
