/*
 * mail.h - messages that exist only as a number until somebody reads them.
 *
 * The bytes of a generated message follow from the account's login and a
 * handful of integers, at any offset, so a thousand accounts with a thousand
 * messages each cost what those integers cost, and two readers always see the
 * same bytes.  A message that a client appended keeps its own bytes.
 */
#ifndef MOCKIMAPD_MAIL_H
#define MOCKIMAPD_MAIL_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Appended bytes; shared by the copies of a message. */
struct raw {
	unsigned users;
	uint32_t size;
	char bytes[];
};
struct raw *raw_new(const void *bytes, uint32_t size);
void raw_drop(struct raw **raw);

/* What the bytes are made from. */
struct mail {
	uint64_t seed;	  /* see mail_seed() */
	uint32_t born;	  /* UID it got at first: gives the Date: line */
	uint32_t size;	  /* RFC822.SIZE, exact */
	struct raw *raw;  /* or NULL: generated */
};

/* A seed for the message of that place.  Big ones carry an attachment. */
uint64_t mail_seed(uint64_t world, const char *login, const char *folder,
    uint32_t uid, bool is_big);
/* The exact size of a message of about `wanted` bytes. */
uint32_t mail_size(uint64_t seed, const char *login, uint32_t born,
    uint32_t wanted);

/* A reader; the head and tail are made once, the body as it is asked for. */
struct mail_reader {
	struct mail mail;
	struct buf head, tail; /* head: up to and with the empty line */
	uint32_t body;	       /* where the body begins */
};
void mail_open(struct mail_reader *reader, const struct mail *mail,
    const char *login);
void mail_close(struct mail_reader *reader);
/* Adds up to `len` bytes from `offset` on. */
void mail_read(const struct mail_reader *reader, uint32_t offset, size_t len,
    struct buf *out);
/* Length of the header block, with the empty line. */
uint32_t mail_head_size(const struct mail_reader *reader);

/* SHA-256 of all bytes, in hex; 65 bytes. */
void mail_digest(const struct mail *mail, const char *login, char out[65]);

/* One step of splitmix64: what all the numbers here are made with. */
uint64_t mail_mix(uint64_t x);

#endif
