/*
 * test_channel.c - frames between master and children.
 */
#include "ipc/channel.h"

#include <check.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

static int fds[2];
static struct err err;

static void
open_pair(void)
{
	ck_assert_int_eq(channel_pair(fds, &err), 0);
}

static void
close_pair(void)
{
	close(fds[0]);
	close(fds[1]);
}

/* A well-formed frame of `type`, zero payload. */
static size_t
make_frame(struct frame *frame, enum msg_type type, uint32_t size)
{
	memset(frame, 0, sizeof(*frame));
	frame->header.version = IPC_VERSION;
	frame->header.type = (uint16_t)type;
	frame->header.size = size;
	return sizeof(frame->header) + size;
}

START_TEST(a_message_arrives_as_it_was_sent)
{
	struct msg_pass_done done = { .epoch = 7, .messages_new = 3,
		.text = "well" };
	struct frame frame;

	ck_assert_int_eq(channel_send(fds[1], 42, MSG_PASS_DONE, &done, &err),
	    0);
	ck_assert_int_eq(channel_recv(fds[0], FROM_CHILD, &frame, &err), 1);
	ck_assert_uint_eq(frame.header.generation, 42);
	ck_assert_uint_eq(frame.header.type, MSG_PASS_DONE);
	ck_assert_mem_eq(&frame.payload.pass_done, &done, sizeof(done));
}
END_TEST

START_TEST(a_full_channel_is_temporary_and_an_empty_one_would_block)
{
	struct msg_activity activity = { .text = "idle" };
	struct frame frame;
	int sent, got;

	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	ck_assert_int_eq(channel_recv(fds[0], FROM_CHILD, &frame, &err), 0);
	for (sent = 0; channel_send(fds[1], 1, MSG_ACTIVITY, &activity,
		 &err) == 0; sent++)
		;
	ck_assert_int_eq(err.kind, ERR_TEMPORARY);
	for (got = 0; channel_recv(fds[0], FROM_CHILD, &frame, &err) == 1;
	     got++)
		;
	ck_assert_int_gt(sent, 0);
	ck_assert_int_eq(got, sent);
}
END_TEST

START_TEST(the_last_words_of_a_closed_side_are_heard)
{
	struct msg_hello hello = { .pid = 1 };
	struct msg_empty empty = { 0 };
	struct frame frame;

	/* unread data on the closing side makes the kernel say ECONNRESET */
	ck_assert_int_eq(channel_send(fds[0], 1, MSG_STOP, &empty, &err), 0);
	ck_assert_int_eq(channel_send(fds[1], 1, MSG_HELLO, &hello, &err), 0);
	close(fds[1]);
	ck_assert_int_eq(channel_recv(fds[0], FROM_CHILD, &frame, &err), 1);
	ck_assert_uint_eq(frame.header.type, MSG_HELLO);
	ck_assert_int_eq(channel_recv(fds[0], FROM_CHILD, &frame, &err), -1);
	ck_assert_int_eq(err.kind, ERR_GONE);
	ck_assert_int_eq(channel_send(fds[0], 1, MSG_STOP, &empty, &err), -1);
	ck_assert_int_eq(err.kind, ERR_GONE);
	fds[1] = -1;
}
END_TEST

START_TEST(oversized_and_empty_packets_are_refused)
{
	static char big[sizeof(struct frame) + 1000];
	struct frame frame;

	ck_assert_int_eq(send(fds[1], big, sizeof(big), 0), sizeof(big));
	ck_assert_int_eq(channel_recv(fds[0], FROM_CHILD, &frame, &err), -1);
	ck_assert_int_eq(err.kind, ERR_PROTOCOL);
	ck_assert_int_eq(send(fds[1], big, 3, 0), 3);
	ck_assert_int_eq(channel_recv(fds[0], FROM_CHILD, &frame, &err), -1);
	ck_assert_int_eq(err.kind, ERR_PROTOCOL);
}
END_TEST

START_TEST(nonsense_in_the_header_is_refused)
{
	struct frame frame, out;
	size_t len;

	len = make_frame(&frame, MSG_HELLO, sizeof(struct msg_hello));
	ck_assert_int_eq(frame_check(&frame, len, FROM_CHILD, &out, &err), 0);
	ck_assert_int_eq(frame_check(&frame, len, FROM_MASTER, &out, &err),
	    -1);
	ck_assert_ptr_nonnull(strstr(err.text, "MSG_HELLO is not for"));
	ck_assert_int_eq(frame_check(&frame, len - 1, FROM_CHILD, &out, &err),
	    -1);
	ck_assert_int_eq(frame_check(&frame, len + 8, FROM_CHILD, &out, &err),
	    -1);
	frame.header.size += 8;
	ck_assert_int_eq(frame_check(&frame, len + 8, FROM_CHILD, &out, &err),
	    -1);
	frame.header.size -= 8;
	frame.header.version++;
	ck_assert_int_eq(frame_check(&frame, len, FROM_CHILD, &out, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "version"));
	frame.header.version--;
	frame.header.type = MSG_TYPE_COUNT;
	ck_assert_int_eq(frame_check(&frame, len, FROM_CHILD, &out, &err), -1);
	ck_assert_int_eq(err.kind, ERR_PROTOCOL);
	ck_assert_int_eq(frame_check(&frame, 0, FROM_CHILD, &out, &err), -1);
}
END_TEST

START_TEST(unterminated_strings_and_wild_counts_are_refused)
{
	struct frame frame, out;
	size_t len;

	len = make_frame(&frame, MSG_ACTIVITY, sizeof(struct msg_activity));
	memset(frame.payload.activity.text, 'x',
	    sizeof(frame.payload.activity.text));
	ck_assert_int_eq(frame_check(&frame, len, FROM_CHILD, &out, &err), -1);
	ck_assert_str_eq(err.text, "MSG_ACTIVITY: text is not terminated");

	len = make_frame(&frame, MSG_EVENT, sizeof(struct msg_event));
	frame.payload.event.n_ids = MSG_IDS_MAX;
	ck_assert_int_eq(frame_check(&frame, len, FROM_CHILD, &out, &err), 0);
	frame.payload.event.n_ids = MSG_IDS_MAX + 1;
	ck_assert_int_eq(frame_check(&frame, len, FROM_CHILD, &out, &err), -1);
	frame.payload.event.n_ids = 0;
	frame.payload.event.event = EVENT_COUNT;
	ck_assert_int_eq(frame_check(&frame, len, FROM_CHILD, &out, &err), -1);

	len = make_frame(&frame, MSG_LOG_LEVEL, sizeof(struct msg_log_level));
	frame.payload.log_level.level = -1;
	ck_assert_int_eq(frame_check(&frame, len, FROM_MASTER, &out, &err),
	    -1);
}
END_TEST

START_TEST(names_are_those_of_the_contract)
{
	ck_assert_str_eq(event_name(EVENT_MESSAGE_NEW), "message.new");
	ck_assert_str_eq(event_name(EVENT_COUNT), "unknown");
	ck_assert_str_eq(msg_type_name(MSG_STOP), "MSG_STOP");
	ck_assert_str_eq(msg_type_name(9999), "unknown message");
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("channel");
	TCase *tc = tcase_create("all");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, open_pair, close_pair);
	tcase_add_test(tc, a_message_arrives_as_it_was_sent);
	tcase_add_test(tc,
	    a_full_channel_is_temporary_and_an_empty_one_would_block);
	tcase_add_test(tc, the_last_words_of_a_closed_side_are_heard);
	tcase_add_test(tc, oversized_and_empty_packets_are_refused);
	tcase_add_test(tc, nonsense_in_the_header_is_refused);
	tcase_add_test(tc, unterminated_strings_and_wild_counts_are_refused);
	tcase_add_test(tc, names_are_those_of_the_contract);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
