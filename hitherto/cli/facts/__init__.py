"""`hitherto facts`: what is known about a user or another subject."""

from hitherto.cli.app import group
from hitherto.cli.facts import fact, review, subjects

facts = group(
    "facts",
    {
        "list": fact.list_facts,
        "show": fact.show,
        "add": fact.add,
        "edit": review.edit,
        "confirm": review.confirm,
        "restore": review.restore,
        "share": review.share,
        "unshare": review.unshare,
        "delete": review.delete,
        "subject": subjects.subject,
        "subjects": subjects.subjects,
    },
)
