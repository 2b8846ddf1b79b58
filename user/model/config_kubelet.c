// SPDX-License-Identifier: Apache-2.0
/* Keys below `kubelet:`. */
#include <string.h>
#include "config_keys.h"

#define AT(field) .offset = offsetof(struct config, field)
#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"

static const char *refuse_path(const char *s)
{
	return *s == '/' && strlen(s) < 1024 ? NULL : "an absolute path, shorter than 1024 bytes";
}

/* The kubelet's own addresses; who wants it behind a path has something else there. */
static const char *refuse_url(const char *s)
{
	size_t scheme = strncmp(s, "https://", 8) == 0 ? 8 : strncmp(s, "http://", 7) == 0 ? 7 : 0, len = strlen(s);

	if (!scheme || len >= 512 || !s[scheme] || s[scheme + strcspn(s + scheme, "/@?# \t\"\\")])
		return "https://HOST:PORT, such as https://127.0.0.1:10250, shorter than 512 bytes";
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)s[i] <= ' ' || (unsigned char)s[i] >= 0x7f)
			return "https://HOST:PORT without other than ASCII";
	return NULL;
}

const struct key config_kubelet_keys[] = {
	{ "url", KEY_STRING, AT(kubelet), NULL, "none",
	  "The kubelet of this node, asked for the names of pods and containers that no local file has: https://HOST:PORT. Over "
	  "http://, the read-only port, no token is sent.",
	  .refuse = refuse_url, .flag = "kubelet", .arg = "URL" },
	{ "token-file", KEY_STRING, AT(kubelet_token_file), ACCOUNT "token", NULL,
	  "The token it is asked with, read anew for each request.", .refuse = refuse_path },
	{ "ca-file", KEY_STRING, AT(kubelet_ca_file), ACCOUNT "ca.crt", NULL,
	  "Authorities that may have signed its certificate; no others are believed.", .refuse = refuse_path },
	{ "insecure", KEY_BOOL, AT(kubelet_insecure), "false", NULL,
	  "Believe any certificate, as kubelets sign their own unless they are told otherwise: who can answer in its place is "
	  "sent the token and says what pods are called." },
	{ 0 }
};
