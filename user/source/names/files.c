/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of files that others wrote. The owner of a file decides whose statement it is, not its place. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "look.h"

#define DOCUMENT_MAX (1u << 20) /* of root; lists of containers grow with them, 1 KiB each */
#define DOCUMENT_USER_MAX (1u << 17) /* a tree takes up to 20 times its text */
#define PASSWD_MAX (1u << 20)

/* Owner of a file. In a captured machine the files of the user who captured it count as root's. */
static uid_t uid_of(const struct look *l, const struct stat *st)
{
	uid_t uid = st->st_uid;
	struct stat dir;
	int fd;

	if (fsroot_is_live(l->root))
		return uid;
	fd = fsroot_openat(l->root, "/", O_PATH | O_DIRECTORY);
	if (fd < 0)
		return uid;
	if (fstat(fd, &dir) == 0 && dir.st_uid == uid)
		uid = 0;
	close(fd);
	return uid;
}

/* The first n bytes of the path; -ENOENT when it is gone. */
static int owner_of(const struct look *l, size_t n, uid_t *ret)
{
	size_t prefix = strlen(l->mount);
	char path[8192];
	struct stat st;
	int fd, rc;

	if (prefix + n >= sizeof(path))
		return -ENAMETOOLONG;
	memcpy(path, l->mount, prefix);
	memcpy(path + prefix, l->path, n);
	path[prefix + n] = '\0';
	fd = fsroot_openat(l->root, path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	rc = fstat(fd, &st) == 0 ? 0 : -errno;
	close(fd);
	if (!rc)
		*ret = uid_of(l, &st);
	return rc;
}

/* From the top: names below a user's directory are the user's, whatever the owner of deeper directories. For
 * directories that are gone, those above decide. */
uid_t naming_owner(const struct look *l)
{
	uid_t owner = 0;

	for (size_t i = 1; i < l->place.above && !owner; i++)
		if (l->path[i] == '/' && owner_of(l, i, &owner) != 0)
			break;
	return owner;
}

/* True for files of root or of the look's user. A captured machine cannot tell the two apart. */
static bool owner_ok(const struct look *l, const struct stat *st)
{
	uid_t owner = uid_of(l, st);

	return owner == l->user || (owner == 0 && !fsroot_is_live(l->root));
}

static char *read_plain(const struct look *l, int fd, size_t max, size_t *ret_len)
{
	struct stat st;
	size_t len = 0, size;
	ssize_t n = 0;
	char *text;

	if (fstat(fd, &st) != 0 || !owner_ok(l, &st) || st.st_mode & S_IWOTH || st.st_size < 2 ||
	    (size_t)st.st_size > max)
		return NULL;
	size = (size_t)st.st_size;
	text = malloc(size + 1);
	while (text && len < size && ((n = read(fd, text + len, size - len)) > 0 || (n < 0 && errno == EINTR)))
		len += n > 0 ? (size_t)n : 0;
	if (text)
		text[len] = '\0';
	*ret_len = len;
	return text;
}

json_t *naming_document(struct look *l, const char *dir, const char *below)
{
	int fd = l->n_documents == NAMING_DOCUMENTS_MAX ? -EMFILE : fsroot_open_below(l->root, dir, below);
	size_t len = 0;
	json_t *doc;
	char *text;

	if (fd < 0)
		return NULL;
	text = read_plain(l, fd, l->user ? DOCUMENT_USER_MAX : DOCUMENT_MAX, &len);
	close(fd);
	if (!text)
		return NULL;
	/* strict: UTF-8, no NUL in texts, nesting up to JSON_PARSER_MAX_DEPTH */
	doc = json_loadb(text, len, 0, NULL);
	free(text);
	if (doc)
		l->documents[l->n_documents++] = doc;
	return doc;
}

const char *naming_string(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s && name_text_ok(s) ? s : NULL;
}

/* The field of a line of passwd(5), NULL when it has fewer. */
static const char *field(const char *line, const char *end, unsigned n, size_t *ret_len)
{
	for (; n; n--) {
		line = memchr(line, ':', (size_t)(end - line));
		if (!line)
			return NULL;
		line++;
	}
	*ret_len = 0;
	while (line + *ret_len < end && line[*ret_len] != ':')
		++*ret_len;
	return line;
}

static bool find_home(const char *text, uid_t uid, char *dst, size_t size)
{
	for (const char *line = text; *line;) {
		const char *end = line + strcspn(line, "\n"), *number, *home;
		char wanted[16];
		size_t len;

		snprintf(wanted, sizeof(wanted), "%u", uid);
		number = field(line, end, 2, &len);
		if (number && strlen(wanted) == len && memcmp(number, wanted, len) == 0 &&
		    (home = field(line, end, 5, &len)) && len && len < size && *home == '/') {
			memcpy(dst, home, len);
			dst[len] = '\0';
			return true;
		}
		line = *end ? end + 1 : end;
	}
	return false;
}

bool naming_home(const struct look *l, char *dst, size_t size)
{
	struct look root = { .root = l->root };
	int fd = fsroot_open_below(l->root, "/etc", "passwd");
	size_t len;
	char *text;
	bool found;

	if (fd < 0)
		return false;
	text = read_plain(&root, fd, PASSWD_MAX, &len);
	close(fd);
	found = text && find_home(text, l->user, dst, size);
	free(text);
	return found;
}
