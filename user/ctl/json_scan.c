/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "json_scan.h"

#define LEVELS 64

static bool wrong(struct json_scan *s, const char *expected)
{
	s->expected = expected;
	return false;
}

static bool open_container(struct json_scan *s, bool object)
{
	if (s->depth == LEVELS)
		return wrong(s, "at most 64 levels");
	s->objects = object ? s->objects | 1ull << s->depth : s->objects & ~(1ull << s->depth);
	s->depth++;
	s->state = object ? JSON_SCAN_KEY_OR_END : JSON_SCAN_VALUE_OR_END;
	return true;
}

static bool in_object(const struct json_scan *s)
{
	return s->objects >> (s->depth - 1) & 1;
}

static bool close_container(struct json_scan *s)
{
	s->depth--;
	s->state = s->depth ? JSON_SCAN_NEXT : JSON_SCAN_DONE;
	return true;
}

static bool begin_string(struct json_scan *s, bool key)
{
	s->key = key;
	s->state = JSON_SCAN_STRING;
	return true;
}

static bool value(struct json_scan *s, uint8_t c)
{
	if (c == '{' || c == '[')
		return open_container(s, c == '{');
	if (c == '"')
		return begin_string(s, false);
	s->word = c == 't' ? "rue" : c == 'f' ? "alse" : c == 'n' ? "ull" : NULL;
	if (s->word)
		s->state = JSON_SCAN_WORD;
	else if (c == '-')
		s->state = JSON_SCAN_MINUS;
	else if (c >= '0' && c <= '9')
		s->state = c == '0' ? JSON_SCAN_ZERO : JSON_SCAN_INT;
	else
		return wrong(s, "a value");
	return true;
}

/* Behind a value. */
static bool next(struct json_scan *s, uint8_t c)
{
	if (c == ',')
		s->state = in_object(s) ? JSON_SCAN_KEY : JSON_SCAN_VALUE;
	else if (c == (in_object(s) ? '}' : ']'))
		return close_container(s);
	else
		return wrong(s, in_object(s) ? "a comma or a closing brace" : "a comma or a closing bracket");
	return true;
}

/* RFC 3629, as text_utf8_len. */
static bool first_of_character(struct json_scan *s, uint8_t c)
{
	if (c < 0xc2 || c > 0xf4)
		return wrong(s, "UTF-8");
	s->utf8 = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
	s->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	s->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	return true;
}

static bool in_string(struct json_scan *s, uint8_t c)
{
	if (s->utf8) {
		if (c < s->low || c > s->high)
			return wrong(s, "UTF-8");
		s->utf8--;
		s->low = 0x80;
		s->high = 0xbf;
		return true;
	}
	if (c < 0x20)
		return wrong(s, "a string without control characters");
	if (c >= 0x80)
		return first_of_character(s, c);
	if (c == '\\')
		s->state = JSON_SCAN_ESCAPE;
	else if (c == '"')
		s->state = s->key ? JSON_SCAN_COLON : JSON_SCAN_NEXT;
	return true;
}

static bool escape(struct json_scan *s, uint8_t c)
{
	if (s->state == JSON_SCAN_ESCAPE) {
		if (!c || !strchr("\"\\/bfnrtu", c))
			return wrong(s, "an escape sequence");
		s->hex = 4;
		s->state = c == 'u' ? JSON_SCAN_HEX : JSON_SCAN_STRING;
		return true;
	}
	if (!c || !strchr("0123456789abcdefABCDEF", c))
		return wrong(s, "four hexadecimal digits");
	if (!--s->hex)
		s->state = JSON_SCAN_STRING;
	return true;
}

static bool in_number(struct json_scan *s, uint8_t c)
{
	bool digit = c >= '0' && c <= '9', exponent = c == 'e' || c == 'E';

	switch (s->state) {
	case JSON_SCAN_MINUS:
		s->state = c == '0' ? JSON_SCAN_ZERO : JSON_SCAN_INT;
		return digit ? true : wrong(s, "a digit");
	case JSON_SCAN_DOT:
		s->state = JSON_SCAN_FRACTION;
		return digit ? true : wrong(s, "a digit");
	case JSON_SCAN_E:
		s->state = c == '+' || c == '-' ? JSON_SCAN_SIGN : JSON_SCAN_EXPONENT;
		return digit || c == '+' || c == '-' ? true : wrong(s, "a digit");
	case JSON_SCAN_SIGN:
		s->state = JSON_SCAN_EXPONENT;
		return digit ? true : wrong(s, "a digit");
	default:
		break;
	}
	if (digit && s->state != JSON_SCAN_ZERO)
		return true;
	if (c == '.' && (s->state == JSON_SCAN_ZERO || s->state == JSON_SCAN_INT))
		s->state = JSON_SCAN_DOT;
	else if (exponent && s->state != JSON_SCAN_EXPONENT)
		s->state = JSON_SCAN_E;
	else
		s->state = JSON_SCAN_NEXT;
	return true;
}

/* Between the tokens. */
static bool between(struct json_scan *s, uint8_t c)
{
	if (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		return true;
	switch (s->state) {
	case JSON_SCAN_START:
		return c == '{' ? open_container(s, true) : wrong(s, "an opening brace");
	case JSON_SCAN_KEY_OR_END:
		if (c == '}')
			return close_container(s);
		return c == '"' ? begin_string(s, true) : wrong(s, "a key or a closing brace");
	case JSON_SCAN_KEY:
		return c == '"' ? begin_string(s, true) : wrong(s, "a key");
	case JSON_SCAN_COLON:
		s->state = JSON_SCAN_VALUE;
		return c == ':' ? true : wrong(s, "a colon");
	case JSON_SCAN_VALUE_OR_END:
		return c == ']' ? close_container(s) : value(s, c);
	case JSON_SCAN_VALUE:
		return value(s, c);
	default:
		return next(s, c);
	}
}

static bool one(struct json_scan *s, uint8_t c)
{
	switch (s->state) {
	case JSON_SCAN_STRING:
		return in_string(s, c);
	case JSON_SCAN_ESCAPE:
	case JSON_SCAN_HEX:
		return escape(s, c);
	case JSON_SCAN_WORD:
		if (c != (uint8_t)*s->word++)
			return wrong(s, "true, false or null");
		s->state = *s->word ? JSON_SCAN_WORD : JSON_SCAN_NEXT;
		return true;
	default:
		break;
	}
	if (s->state >= JSON_SCAN_MINUS && s->state <= JSON_SCAN_EXPONENT) {
		if (!in_number(s, c) || s->state != JSON_SCAN_NEXT)
			return !s->expected;
	}
	return between(s, c);
}

size_t json_scan(struct json_scan *s, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (s->state == JSON_SCAN_DONE || s->expected || !one(s, p[i]))
			return i;
	return n;
}
