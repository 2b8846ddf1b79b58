/* SPDX-License-Identifier: Apache-2.0 */
#include "private_agent.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/clock.h"
#include "base/format/json.h"
#include "ctl/core/agent_client.h"
#include "ctl/core/janitor.h"
#include "ctl/core/put.h"
#include "model/schema.h"

#define CONFIG "/etc/jouled/jouled.yaml"
#define START_NS (20 * NS_PER_S)
#define STOP_NS (5 * NS_PER_S)
#define LOOK_NS (5 * NS_PER_MS)
#define ARGS_MAX 32
#define SOCKET_NAME sizeof(((struct sockaddr_un *)0)->sun_path)

struct private_agent {
	pid_t pid; /* 0 = not started, or ended */
	struct janitor *janitor;
	char dir[108], socket[128], said[128], config[128];
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	remove(path);
	return 0;
}

static void remove_directory(void *dir)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
}

/* jouled is looked for where this program was started: build/joulectl and build/jouled, bin and sbin. */
void private_agent_program(char path[PATH_MAX])
{
	static const char *const beside[] = { "/jouled", "/../sbin/jouled" };
	const char *self = (const char *)getauxval(AT_EXECFN);
	char full[PATH_MAX], *slash = NULL;

	if (self && realpath(self, full) && (slash = strrchr(full, '/')))
		*slash = '\0';
	for (unsigned i = 0; slash && i < sizeof(beside) / sizeof(beside[0]); i++)
		if (snprintf(path, PATH_MAX, "%s%s", full, beside[i]) < PATH_MAX && access(path, X_OK) == 0)
			return;
	snprintf(path, PATH_MAX, "jouled");
}

static int make_directory(struct private_agent *p, struct err *err)
{
	const char *tmp = getenv("TMPDIR");

	/* The path of a socket must be short (unix(7)). */
	if (!tmp || tmp[0] != '/' || strlen(tmp) + sizeof("/jouled-XXXXXX/socket") > SOCKET_NAME)
		tmp = "/tmp";
	snprintf(p->dir, sizeof(p->dir), "%s/jouled-XXXXXX", tmp);
	if (!mkdtemp(p->dir)) {
		int rc = -errno;

		p->dir[0] = '\0';
		return err_set(err, rc, "%s: no directory can be made: %s; set TMPDIR", tmp, strerror(-rc));
	}
	snprintf(p->socket, sizeof(p->socket), "%s/socket", p->dir);
	snprintf(p->said, sizeof(p->said), "%s/said", p->dir);
	return 0;
}

/* Becomes jouled, in the child. A session of its own keeps the terminal's signals away, and the death of the parent
 * ends it (PR_SET_PDEATHSIG, prctl(2)). */
static void become(const struct private_agent *p, pid_t parent, const char *program, char *const *argv)
{
	int in = open("/dev/null", O_RDWR | O_CLOEXEC), out = open(p->said, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || in < 0 || out < 0)
		_exit(127);
	unsetenv("LISTEN_FDS");
	unsetenv("NOTIFY_SOCKET");
	dup2(in, STDIN_FILENO);
	dup2(in, STDOUT_FILENO);
	dup2(out, STDERR_FILENO);
	close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);
	execvp(program, argv);
	dprintf(STDERR_FILENO, "jouled: error: %s: %s; install jouled beside joulectl or in PATH\n", program,
		strerror(errno));
	_exit(127);
}

size_t private_agent_event(const char *events)
{
	bool inside = false;
	size_t len = 0;

	for (; events[len] && (inside || events[len] != ','); len++)
		inside ^= events[len] == '/';
	return len;
}

/* Adds a list of events as a line of YAML. Text in JSON's quotes is YAML too. */
static void add_events(struct buf *b, const char *events)
{
	struct json j;
	size_t len;

	buf_add_str(b, "events: { msr: [], core: ");
	json_init(&j, b);
	json_array_begin(&j);
	for (; *events; events += len + (events[len] == ',')) {
		char name[SCHEMA_NAME_MAX];

		len = private_agent_event(events);
		snprintf(name, sizeof(name), "%.*s", (int)len, events);
		json_str(&j, name);
	}
	json_array_end(&j);
	buf_add_str(b, " }\n");
}

/* Writes the configuration of an agent with these events into its directory. */
static int configure(struct private_agent *p, const char *events, struct err *err)
{
	struct buf b = { 0 };
	int rc;

	snprintf(p->config, sizeof(p->config), "%s/config.yaml", p->dir);
	add_events(&b, events);
	rc = put_file(p->config, &b, err);
	buf_free(&b);
	return rc;
}

static int execute(struct private_agent *p, const struct private_agent_options *o, struct err *err)
{
	char program[PATH_MAX], state[128];
	const char *argv[ARGS_MAX] = { "jouled", "--socket", p->socket, "--state-dir", state, "-o", "null:" };
	unsigned n = 7;
	pid_t parent = getpid();

	private_agent_program(program);
	snprintf(state, sizeof(state), "%s/state", p->dir);
	if (o->events) {
		argv[n++] = "-c";
		argv[n++] = p->config;
	} else if (access(CONFIG, F_OK) == 0 && access(CONFIG, R_OK) != 0) {
		argv[n++] = "-c";
		argv[n++] = "/dev/null";
	}
	if (o->idle) {
		argv[n++] = "--idle";
		argv[n++] = o->idle;
	}
	for (unsigned i = 0; o->more && o->more[i] && n < ARGS_MAX - 1; i++)
		argv[n++] = o->more[i];
	p->pid = fork();
	if (p->pid == 0)
		become(p, parent, program, (char *const *)argv);
	if (p->pid < 0) {
		int rc = -errno;

		p->pid = 0;
		return err_set(err, rc, "private agent: %s; raise the limit of processes", strerror(-rc));
	}
	return 0;
}

/* Reports the last error of the agent, without the program's name in front. */
static int failed(struct private_agent *p, struct err *err)
{
	static const char prefix[] = "jouled: error: ";
	char line[400], last[400] = "it ended without a word; see jouled doctor";
	FILE *f = fopen(p->said, "re");

	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (strncmp(line, prefix, sizeof(prefix) - 1) == 0)
			snprintf(last, sizeof(last), "%s", line + sizeof(prefix) - 1);
	}
	if (f)
		fclose(f);
	return err_set(err, -ECHILD, "private agent: %s", last);
}

static bool has_ended(struct private_agent *p)
{
	if (p->pid && waitpid(p->pid, NULL, WNOHANG) != 0)
		p->pid = 0;
	return !p->pid;
}

static int wait_for_answer(struct private_agent *p, struct err *err)
{
	uint64_t until = clock_mono_ns() + START_NS;
	struct agent *a;

	while (clock_mono_ns() < until) {
		if (agent_open(p->socket, &a, NULL) == 0) {
			struct buf body = { 0 };
			int rc = agent_get(a, "/v1/status", NULL, &body, err);

			buf_free(&body);
			agent_close(a);
			return rc && has_ended(p) ? failed(p, err) : rc;
		}
		if (has_ended(p))
			return failed(p, err);
		nap();
	}
	return err_set(err, -ETIMEDOUT, "private agent: no answer in %d s; is the machine overloaded?",
		       (int)(START_NS / NS_PER_S));
}

int private_agent_start(const struct private_agent_options *o, struct private_agent **ret, struct err *err)
{
	struct private_agent *p = calloc(1, sizeof(*p));
	int rc = p ? make_directory(p, err) : err_set(err, -ENOMEM, "private agent: out of memory; free some");

	if (!rc)
		rc = janitor_start(remove_directory, p->dir, -1, &p->janitor, err);
	if (!rc && o->events)
		rc = configure(p, o->events, err);
	if (!rc)
		rc = execute(p, o, err);
	if (!rc)
		rc = wait_for_answer(p, err);
	if (rc)
		private_agent_stop(p);
	else
		*ret = p;
	return rc;
}

const char *private_agent_socket(const struct private_agent *p)
{
	return p->socket;
}

void private_agent_stop(struct private_agent *p)
{
	uint64_t until = clock_mono_ns() + STOP_NS;

	if (!p)
		return;
	if (p->pid)
		kill(p->pid, SIGTERM);
	while (!has_ended(p)) {
		if (clock_mono_ns() > until)
			kill(p->pid, SIGKILL);
		nap();
	}
	if (p->dir[0])
		remove_directory(p->dir);
	janitor_dismiss(p->janitor);
	free(p);
}
