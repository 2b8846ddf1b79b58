/* SPDX-License-Identifier: Apache-2.0 */
/* The TCP port of the page. It is opened before privileges are given up. Its secret is in a file that the users
 * of the query socket may read. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/log.h"
#include "sink/tcp_listen.h"
#include "sink/url.h"
#include "web.h"

static int write_token(int fd, const struct serving_web *w, gid_t group)
{
	size_t len = strlen(w->guard.token);

	if (group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) != 0) {
		if (errno != EPERM)
			return -errno;
		group = (gid_t)-1; /* as with the socket: for its owner only */
	}
	if (fchmod(fd, group != (gid_t)-1 ? 0640 : 0600) != 0)
		return -errno;
	return write(fd, w->guard.token, len) == (ssize_t)len ? 0 : -EIO;
}

/* Writes another file and renames it: readers never see half a secret, and a planted link is never followed. */
static int make_token_file(const struct serving_web *w, gid_t group)
{
	char temp[sizeof(w->token_file) + 8];
	const char *slash;
	int fd, rc;

	if (strlen(w->token_file) + 1 == sizeof(w->token_file))
		return -ENAMETOOLONG;
	slash = strrchr(w->token_file, '/');
	snprintf(temp, sizeof(temp), "%.*s", slash ? (int)(slash - w->token_file) : 0, w->token_file);
	if (*temp)
		mkdir(temp, 0755); /* one level, as with the socket; a failure shows when the file is made */
	snprintf(temp, sizeof(temp), "%s.XXXXXX", w->token_file);
	fd = mkostemp(temp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = write_token(fd, w, group);
	close(fd);
	if (!rc && rename(temp, w->token_file) != 0)
		rc = -errno;
	if (rc)
		unlink(temp);
	return rc;
}

static unsigned port_of(int fd)
{
	struct sockaddr_storage a = { 0 };
	socklen_t len = sizeof(a);

	getsockname(fd, (struct sockaddr *)&a, &len);
	return ntohs(((struct sockaddr_in *)&a)->sin_port); /* the same offset in both families */
}

int serving_web_open(struct serving_web *w, const struct web_config *c, gid_t group, struct err *err)
{
	bool whole = c->listen && strrchr(c->listen, ':') && c->listen[0] != ':';
	struct server_place place;
	struct err cause = { 0 };
	struct sink_url u;
	char url[320];
	int rc;

	w->fd = -1;
	if (!c->listen)
		return 0;
	snprintf(url, sizeof(url), "http-listen://%s%.256s",
		 whole ? "" : "127.0.0.1:", c->listen[0] == ':' ? c->listen + 1 : c->listen);
	if ((rc = sink_url_scheme(url, &u, &cause)) || (rc = sink_url_rest(url, SINK_URL_ADDR_PORT, &u, &cause)) ||
	    (rc = tcp_listen_place(&u, NULL, &place, &cause)))
		return err_set(err, rc, "web.listen: %s", cause.text);
	w->fd = place.fd;
	snprintf(w->where, sizeof(w->where), "%s", place.where);
	snprintf(w->token_file, sizeof(w->token_file), "%s", c->token_file);
	rc = web_guard_init(&w->guard, port_of(w->fd), false);
	w->guard.open = c->open;
	if (rc)
		return err_set(err, rc, "web: no random numbers; is /dev/urandom there?");
	if (c->open) {
		w->token_file[0] = '\0';
		log_warn(
			"web: open: whoever reaches http://%s/ sees all; leave web.open out where others are on this network",
			w->where);
		return 0;
	}
	rc = make_token_file(w, group);
	if (rc)
		return err_set(err, rc, "web.token-file %s: %s; create its directory, or name another file",
			       w->token_file, strerrordesc_np(-rc));
	w->guard.token_file = w->token_file;
	if (isatty(STDERR_FILENO))
		log_note("web: http://%s/?token=%s", w->where, w->guard.token);
	else
		log_note("web: http://%s/?token=$(cat %s)", w->where, w->token_file);
	return 0;
}

void serving_web_close(struct serving_web *w)
{
	char text[WEB_SECRET_SIZE + 1] = "";
	int fd;

	if (w->fd >= 0)
		close(w->fd);
	fd = w->token_file[0] ? open(w->token_file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0)
		return;
	/* a successor may have written its own */
	if (read(fd, text, sizeof(text) - 1) > 0 && strcmp(text, w->guard.token) == 0)
		unlink(w->token_file);
	close(fd);
}
