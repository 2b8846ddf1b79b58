/* SPDX-License-Identifier: Apache-2.0 */
#include "wire.h"

#define V02_HEADER 25 /* bytes before the entries */
#define LENGTH 4

static uint8_t *put_float(uint8_t *p, float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return vjoule_put_u32(p, bits);
}

size_t vjoule_header_size(enum vjoule_dialect d, const struct vjoule_header *h)
{
	size_t size = LENGTH + (d == VJOULE_DOCUMENT ? 4 : V02_HEADER);

	for (uint32_t i = 0; i < h->n; i++)
		size += 6 + h->entries[i].len;
	return size;
}

uint8_t *vjoule_put_header(uint8_t *p, enum vjoule_dialect d, const struct vjoule_header *h)
{
	p = vjoule_put_u32(p, (uint32_t)(vjoule_header_size(d, h) - LENGTH));
	if (d == VJOULE_V02) {
		p = vjoule_put_u32(p, h->cpus);
		/* no simulation, so no power limits. No list of powers: the form in which the original writes
		 * one cannot be read back */
		memset(p, 0, 1 + 3 * 4 + 4);
		p += 1 + 3 * 4 + 4;
	}
	p = vjoule_put_u32(p, h->n);
	for (uint32_t i = 0; i < h->n; i++) {
		p = vjoule_put_u16(p, (uint16_t)h->entries[i].id);
		p = vjoule_put_u32(p, h->entries[i].len);
		memcpy(p, h->entries[i].name, h->entries[i].len);
		p += h->entries[i].len;
	}
	return p;
}

size_t vjoule_machine_size(enum vjoule_dialect d, const struct vjoule_machine *m)
{
	size_t size = LENGTH + 4 * VJOULE_ENERGIES + 4 + m->n_system * vjoule_metric_size(d);

	return d == VJOULE_DOCUMENT ? size + 4 : size + 4 + 4 + 4 * (size_t)m->n_khz + 2;
}

uint8_t *vjoule_put_machine(uint8_t *p, enum vjoule_dialect d, const struct vjoule_machine *m, size_t size,
			    uint32_t n_cgroups)
{
	p = vjoule_put_u32(p, (uint32_t)(size - LENGTH));
	for (unsigned i = 0; i < VJOULE_ENERGIES; i++)
		p = put_float(p, m->energy_j[i]);
	if (d == VJOULE_V02) {
		p = vjoule_put_u32(p, m->temperature_mc);
		p = vjoule_put_u32(p, m->n_khz);
		for (uint32_t i = 0; i < m->n_khz; i++)
			p = vjoule_put_u32(p, m->khz[i]);
	}
	p = vjoule_put_u32(p, m->n_system);
	p = vjoule_put_metrics(p, d, m->system, m->n_system);
	return d == VJOULE_V02 ? vjoule_put_u16(p, (uint16_t)n_cgroups) : vjoule_put_u32(p, n_cgroups);
}
