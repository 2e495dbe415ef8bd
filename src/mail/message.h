/*
 * message.h - one message as every layer from mime to ctl sees it.
 *
 * Plain data.  mime fills the content, imap the position and flags, store
 * writes both.  All strings are valid UTF-8 without NUL unless said otherwise
 * and live in the arena of whoever filled them.
 */
#ifndef MAIL_MESSAGE_H
#define MAIL_MESSAGE_H

#include "base/banned.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits of message_state.flags in the schema: do not renumber. */
enum flag_bit {
	FLAG_SEEN = 1,
	FLAG_FLAGGED = 2,
	FLAG_ANSWERED = 4,
	FLAG_DRAFT = 8,
	FLAG_DELETED = 16, /* marked \Deleted, not yet expunged (L107) */
};

/*
 * System flags as bits; keywords as one string, separated by single blanks,
 * sorted by bytes, without duplicates; "" when there are none.  A keyword
 * with a control character or 8-bit byte is dropped where it is read (L033).
 */
struct flags {
	uint32_t bits;
	const char *keywords; /* never NULL */
};

enum parse_state {
	PARSE_OK,	  /* "ok" */
	PARSE_PARTIAL,	  /* "partial": over a limit; what was read is kept */
	PARSE_UNPARSED,	  /* "unparsed": raw bytes only */
	PARSE_OVER_QUOTA, /* "over_quota": no body stored */
};

enum recipient_kind { TO = 't', CC = 'c', BCC = 'b', REPLY_TO = 'r' };

struct address {
	char kind;	  /* enum recipient_kind; unused for senders */
	const char *name; /* "" when there is none */
	const char *addr; /* "" when only a name could be read */
};

struct attachment {
	const char *filename;	  /* NULL: none was given */
	const char *content_type; /* lower case, "type/subtype" */
	const char *content_id;	  /* without < >; NULL: none */
	uint64_t size;		  /* decoded bytes */
	bool is_inline;		  /* referenced by the HTML, or so marked */
};

/* What mime reads out of the raw bytes. */
struct content {
	enum parse_state state;
	const char *state_reason; /* "" when state is PARSE_OK */

	const char *subject; /* NULL: no header; "" : empty header */
	const char *base_subject; /* without reply prefixes and list tags */
	bool is_reply;		  /* the subject had a reply prefix */
	const char *from_name;	  /* of the first sender; NULL: none */
	const char *from_addr;	  /* NULL: none */
	struct address *senders;  /* every From */
	size_t n_senders;
	struct address *recipients; /* To, Cc, Bcc, Reply-To, in this order */
	size_t n_recipients;

	bool has_sent_at; /* false: no usable Date header */
	int64_t sent_at_secs;
	int64_t received_secs; /* newest Received; 0 = none */

	const char *message_id;	 /* without < >, verbatim; NULL: none */
	const char *in_reply_to; /* first id; NULL: none */
	const char **references; /* ids, oldest first, without < > */
	size_t n_references;

	const char *text; /* what a person would read */
	size_t text_len;
	const char *extra; /* searched only: other forms, attached messages */
	size_t extra_len;
	const char *snippet; /* first 160 characters or so, one line */

	struct attachment *attachments;
	size_t n_attachments;
	bool has_attachments; /* counts neither inline images nor signatures */
};

/* Where a message is on the server and what the server says of it. */
struct place {
	uint32_t uid;
	struct flags flags;
	bool has_flags;	     /* FLAGS absent = no information (L115) */
	uint64_t modseq;     /* 0: none */
	uint64_t size;	     /* RFC822.SIZE, a hint only */
	bool has_internal_date;
	int64_t internal_date_secs;
	const char *message_id; /* header-only fetches; NULL otherwise */
};

#define DIGEST_SIZE 32 /* SHA-256 of the raw bytes */

/* Where the raw bytes lie; written before the row that refers to it. */
struct blob_ref {
	uint8_t digest[DIGEST_SIZE];
	int32_t segment; /* 0: a file of its own, named by the digest */
	int64_t offset;	 /* of the record in the segment */
	uint32_t codec;	 /* enum blob_codec */
	uint64_t stored; /* bytes on disk, without the record header */
	uint64_t size;	 /* raw bytes */
};

#endif
