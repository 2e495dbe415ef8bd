dist_man_MANS += man/mailherd.conf.5
dist_man_MANS += man/mailherdctl.8
dist_man_MANS += man/mailherd.8
