noinst_LIBRARIES += libctl.a
libctl_a_SOURCES = \
	src/ctl/args.c src/ctl/args.h \
	src/ctl/cell.c \
	src/ctl/cmd-account.c \
	src/ctl/cmd-account-show.c \
	src/ctl/cmd-blob.c \
	src/ctl/cmd-daemon.c \
	src/ctl/cmd-events.c \
	src/ctl/cmd-explain.c \
	src/ctl/cmd-help.c \
	src/ctl/cmd-job.c \
	src/ctl/cmd-mailbox.c \
	src/ctl/cmd-message.c \
	src/ctl/cmd-owner.c \
	src/ctl/cmd-quarantine.c \
	src/ctl/cmd-schema.c \
	src/ctl/cmd-thread.c \
	src/ctl/cmd-user.c \
	src/ctl/cmd-workers.c \
	src/ctl/commands.c src/ctl/commands.h \
	src/ctl/confirm.c src/ctl/confirm.h \
	src/ctl/ctl.c src/ctl/ctl.h \
	src/ctl/daemons.c src/ctl/daemons.h \
	src/ctl/display.c src/ctl/display.h \
	src/ctl/follow.c src/ctl/follow.h \
	src/ctl/next.c src/ctl/next.h \
	src/ctl/password.c src/ctl/password.h \
	src/ctl/socket.c src/ctl/socket.h \
	src/ctl/spec.c src/ctl/spec.h \
	src/ctl/table.c src/ctl/table.h

bashcompletiondir = $(datadir)/bash-completion/completions
dist_bashcompletion_DATA = contrib/completion/mailherdctl
