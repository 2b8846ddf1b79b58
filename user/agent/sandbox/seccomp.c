/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are not listed reach a thread of ours before they are refused (seccomp_unotify(2)): it names them in the
 * log, and with "log" lets them through. Nothing is killed: a library that asks for something new falls back as it
 * does on an older kernel, which is also why the answer is ENOSYS and not EPERM. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../base/log.h"
#include "../base/thread.h"
#include "seccomp.h"

#define STACK_BYTES (64 * 1024)
#define REFUSED SCMP_ACT_ERRNO(ENOSYS)
#define NUMBERS 1024 /* of system calls; those beyond share the last counter */

/* One filter a process: it cannot be taken back. */
static struct guard {
	int fd;
	bool allow;
	pthread_t thread;
	uint64_t asked[NUMBERS];
	struct seccomp_notif *req;
	struct seccomp_notif_resp *resp;
} guard = { .fd = -1 };

/* At the first time and at each doubling: a loop that is refused must not fill a disk. */
static void say(const struct guard *g, const struct seccomp_notif *req, uint64_t times)
{
	char *name = seccomp_syscall_resolve_num_arch(req->data.arch, req->data.nr);

	if ((times & (times - 1)) == 0)
		log_warn(
			"seccomp: %s (system call %d) is not one that jouled needs; %s, %llu so far (seccomp: on|off|log)",
			name ? name : "unknown", req->data.nr, g->allow ? "let through" : "refused",
			(unsigned long long)times);
	free(name);
}

static void answer(struct guard *g)
{
	unsigned nr;

	memset(g->req, 0, sizeof(*g->req));
	if (seccomp_notify_receive(g->fd, g->req) != 0)
		return; /* interrupted, or who asked is gone */
	nr = (unsigned)g->req->data.nr;
	memset(g->resp, 0, sizeof(*g->resp));
	g->resp->id = g->req->id;
	g->resp->error = g->allow ? 0 : -ENOSYS;
	g->resp->flags = g->allow ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0;
	seccomp_notify_respond(g->fd, g->resp);
	say(g, g->req, ++g->asked[nr < NUMBERS ? nr : NUMBERS - 1]);
}

static void *answer_all(void *arg)
{
	for (;;)
		answer(arg);
	return NULL;
}

/* Without a thread the listener is closed: the kernel then answers ENOSYS itself, where calls would wait for ever. */
static int start_thread(struct guard *g)
{
	int rc = g->fd < 0 ? -EMFILE : thread_start(&g->thread, "jouled-seccomp", STACK_BYTES, answer_all, g);

	if (!rc) {
		pthread_detach(g->thread);
	} else if (g->fd >= 0) {
		close(g->fd);
		g->fd = -1;
	}
	return rc;
}

/* The library keeps its own until its end, so that nobody could close the last one. */
static int take_listener(scmp_filter_ctx f)
{
	int own = seccomp_notify_fd(f), fd = fcntl(own, F_DUPFD_CLOEXEC, 0);

	close(own);
	return fd;
}

/* Names of other machines and of newer kernels than the library's are passed over. */
static int allow(scmp_filter_ctx f, const struct filter_call *c)
{
	int rc = 0;

	for (; c->name && !rc; c++) {
		int nr = seccomp_syscall_resolve_name(c->name);

		if (nr == __NR_SCMP_ERROR && c->number)
			nr = c->number;
		if (nr >= 0)
			rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 0);
	}
	return rc;
}

/* Sockets of the families that outputs have. New threads, but no namespaces: a user namespace would give back
 * capabilities. clone3 hides its flags in memory, so it is absent, and the C library uses clone. */
static int allow_by_argument(scmp_filter_ctx f, uint32_t others)
{
	static const unsigned families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_VSOCK };
	const unsigned long namespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
					 CLONE_NEWPID | CLONE_NEWNET;
	int rc = 0;

	if (others != REFUSED) /* a rule that says what all others get is an error (seccomp_rule_add(3)) */
		rc = seccomp_rule_add(f, REFUSED, SCMP_SYS(clone3), 0);
	if (!rc)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
				      SCMP_A0(SCMP_CMP_MASKED_EQ, namespaces, 0));
	for (unsigned i = 0; i < sizeof(families) / sizeof(families[0]) && !rc; i++)
		rc = seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, families[i]));
	return rc;
}

static int load(uint32_t others, bool programs, int *ret_fd)
{
	scmp_filter_ctx f = seccomp_init(others);
	int rc;

	if (!f)
		return -ENOMEM;
	rc = seccomp_attr_set(f, SCMP_FLTATR_ACT_BADARCH, REFUSED);
	if (!rc)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2); /* a tree: depth 9 instead of 300 comparisons */
	if (!rc)
		rc = allow(f, filter_calls);
	if (!rc && programs)
		rc = allow(f, filter_programs);
	if (!rc)
		rc = allow_by_argument(f, others);
	if (!rc)
		rc = seccomp_load(f);
	if (!rc && others == SCMP_ACT_NOTIFY)
		*ret_fd = take_listener(f);
	seccomp_release(f);
	return rc;
}

bool filter_available(const char **ret_reason)
{
	const uint32_t action = SECCOMP_RET_ERRNO;

	*ret_reason = "";
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0)
		return true;
	*ret_reason = errno == EPERM ? "a filter of the container's or the service's refuses it" :
				       "not in this kernel; boot one with CONFIG_SECCOMP_FILTER";
	return false;
}

int filter_enter(enum filter_mode mode, bool programs, struct err *err)
{
	struct guard *g = &guard;
	const char *reason;
	int rc;

	if (mode == FILTER_OFF)
		return 0;
	if (!filter_available(&reason))
		return err_set(err, -ENOSYS, "seccomp: %s", reason);
	g->allow = mode == FILTER_LOG;
	if (seccomp_notify_alloc(&g->req, &g->resp) == 0) {
		rc = load(SCMP_ACT_NOTIFY, programs, &g->fd);
		if (!rc) {
			rc = start_thread(g);
			return rc ? err_set(err, rc,
					    "seccomp: no thread that names what is refused: %s; raise the limit of tasks",
					    strerror(-rc)) :
				    0;
		}
	}
	/* before 5.5, or a container's filter has a listener of its own, and there is one at most */
	rc = load(mode == FILTER_LOG ? SCMP_ACT_LOG : REFUSED, programs, NULL);
	if (rc)
		return err_set(err, rc, "seccomp: the filter is refused: %s", strerror(-rc));
	log_info(
		"seccomp: no listener can be had here: what is refused is not named; seccomp: log has it in the kernel's audit log");
	return 0;
}
