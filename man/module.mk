dist_man_MANS += man/mailherd.conf.5
