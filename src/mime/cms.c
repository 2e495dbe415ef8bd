/*
 * cms.c - the content of S/MIME's signed-data.
 *
 * Runs in: children that parse.  Never blocks.
 *
 * Only the few outer layers are walked, in BER as senders write it: lengths
 * that are not said, octets in pieces.  GnuTLS wants the whole in DER and
 * refuses what is cut or only half understood; here nothing is verified, so
 * nothing more is needed.  Nothing recurses.
 */
#include "mime/cms.h"

#include <stdint.h>
#include <string.h>

enum { BER_OID = 0x06, BER_OCTETS = 0x04, BER_OCTETS_IN_PIECES = 0x24,
	BER_SEQUENCE = 0x30, BER_EXPLICIT = 0xA0 };

#define NESTING_MAX 100

struct ber {
	const unsigned char *p, *end;
};

struct element {
	unsigned tag;
	bool is_open; /* its length is not said */
	size_t len;   /* what there is of it, when it is */
};

/* The tag and length at b->p; false: there is none. */
static bool
ber_read(struct ber *b, struct element *e)
{
	size_t n, len = 0;

	if (b->end - b->p < 2 || (b->p[0] & 0x1F) == 0x1F)
		return false;
	e->tag = b->p[0];
	n = b->p[1];
	b->p += 2;
	e->is_open = n == 0x80;
	if (n < 0x80) {
		len = n;
	} else {
		n &= 0x7F;
		if (n > sizeof(len) || (size_t)(b->end - b->p) < n)
			return false;
		while (n-- > 0)
			len = len << 8 | *b->p++;
	}
	if (len > (size_t)(b->end - b->p))
		len = (size_t)(b->end - b->p);
	e->len = len;
	return true;
}

/* Behind an element whose tag and length were read. */
static bool
ber_skip(struct ber *b, struct element e)
{
	unsigned depth = e.is_open;

	b->p += e.is_open ? 0 : e.len;
	while (depth > 0) {
		if (!ber_read(b, &e) || depth > NESTING_MAX)
			return false;
		if (e.tag == 0 && e.len == 0)
			depth--;
		else if (e.is_open)
			depth++;
		else
			b->p += e.len;
	}
	return true;
}

static bool
ber_enter(struct ber *b, unsigned tag)
{
	struct element e;

	return ber_read(b, &e) && e.tag == tag;
}

static enum cms_type
cms_read_type(struct ber *b)
{
	static const struct {
		const char *oid;
		size_t len;
		enum cms_type type;
	} types[] = {
		{ "\x2A\x86\x48\x86\xF7\x0D\x01\x07\x02", 9, CMS_SIGNED },
		{ "\x2A\x86\x48\x86\xF7\x0D\x01\x07\x03", 9, CMS_ENCRYPTED },
		{ "\x2A\x86\x48\x86\xF7\x0D\x01\x07\x04", 9, CMS_ENCRYPTED },
		{ "\x2A\x86\x48\x86\xF7\x0D\x01\x09\x10\x01\x17", 11,
		    CMS_ENCRYPTED },
		{ "\x2A\x86\x48\x86\xF7\x0D\x01\x09\x10\x01\x09", 11,
		    CMS_COMPRESSED },
	};
	struct element e;
	size_t i;

	if (!ber_enter(b, BER_SEQUENCE) || !ber_read(b, &e) ||
	    e.tag != BER_OID || e.is_open)
		return CMS_NONE;
	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].len == e.len &&
		    memcmp(types[i].oid, b->p, e.len) == 0) {
			b->p += e.len;
			return types[i].type;
		}
	return CMS_NONE;
}

/* Octets, all or in pieces (of pieces), to `out`, which may be their place. */
static size_t
cms_read_octets(struct ber *b, unsigned char *out)
{
	unsigned depth = 0;
	struct element e;
	size_t n = 0;

	while (ber_read(b, &e)) {
		if (e.tag == BER_OCTETS && !e.is_open) {
			memmove(out + n, b->p, e.len);
			n += e.len;
			b->p += e.len;
			if (depth == 0)
				break;
		} else if (e.tag == BER_OCTETS_IN_PIECES) {
			/* The end of one whose length is said shows itself
			 * by what follows, which is no octets. */
			depth++;
		} else if (e.tag != 0 || e.len != 0 || depth-- <= 1) {
			break;
		}
	}
	return n;
}

enum cms_type
cms_open(unsigned char *data, size_t len, size_t *content_r)
{
	struct ber b = { data, data + len };
	enum cms_type type = cms_read_type(&b);
	struct element e;

	*content_r = 0;
	if (type != CMS_SIGNED)
		return type;
	/* SignedData: version, algorithms, then the content. */
	if (!ber_enter(&b, BER_EXPLICIT) || !ber_enter(&b, BER_SEQUENCE) ||
	    !ber_read(&b, &e) || !ber_skip(&b, e) ||
	    !ber_read(&b, &e) || !ber_skip(&b, e) ||
	    !ber_enter(&b, BER_SEQUENCE) || !ber_read(&b, &e) ||
	    e.tag != BER_OID || !ber_skip(&b, e) ||
	    !ber_enter(&b, BER_EXPLICIT))
		return type;
	*content_r = cms_read_octets(&b, data);
	return type;
}
