"""Groups: `groups` makes, follows and cancels them, `memberships` is the way in, `ends` the way out.

`statuses` is the table that says what a group is.
"""
