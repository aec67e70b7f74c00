"""What moved, as a person reads it: lines that fit the screen. Texts are shortened, ranks, labels and numbers never."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size

from fliprank.console.texts import screen_width, shortened
from fliprank.experiment.significance import p_value

if TYPE_CHECKING:
    from fliprank.experiment.diff import Diff
    from fliprank.experiment.move_reasons import Reason
    from fliprank.experiment.query_diff import Flip, Moved, QueryDiff
    from fliprank.experiment.tuning_moves import TuningMoves

__all__ = ["moves_lines", "query_lines", "summary_lines"]

MOST_DOCUMENTS, MOST_FLIPS, MOST_REASONS = 5, 5, 3
"""What is shown of a query, unless all of it is asked for."""
BRIEFLY, WIDEST = 3, 100
"""Documents of a query that the end of a tuning shows, and in how many columns at most."""
REASONS = "After a document: what changed most of its margin over those that it swapped with, in spreads of scores."


def summary_lines(found: Diff) -> Iterator[str]:
    """All queries together."""
    told = found.summary()
    if found.means is not None:
        sure = ""
        if found.comparison is not None:
            low, high = found.comparison.interval
            sure = f" ({low:+.4f} to {high:+.4f}), p = {p_value(found.comparison.p['randomisation'])}"
        yield f"{found.measure} over {len(found)} queries"
        change = told.get("difference", told["after"] - told["before"])
        yield f"{told['before']:.4f} -> {told['after']:.4f}: {change:+.4f}{sure}"
        yield f"{told['helped']} queries helped, {told['hurt']} hurt, {told['unchanged']} unchanged"
    else:
        yield f"{len(found)} queries, without judgements: those whose lists moved most come first"
    moved = f"{told['entered']} documents entered the first {found.top} ranks, {told['left']} left"
    yield f"{moved}; the same in {told['same']} queries"
    yield f"Rank-biased overlap of the lists (1: the same): {told['overlap']:.4f}"
    yield "Lists show label and document; < is the rank before, - none or not judged."
    if found.details.explainer is not None:
        yield "by: what changed most of its margin over the documents that it swapped with, in spreads of scores"


def query_lines(query: QueryDiff, width: int | None = None, everything: bool = False) -> Iterator[str]:
    """One query: both lists, the documents that moved, the flips, and why."""
    wide = max(width or screen_width(), 60)
    yield ""
    yield shortened(_name(query), wide)
    yield _figures(query)
    yield from _side_by_side(query, wide)
    moved = query.moved if everything else query.moved[:MOST_DOCUMENTS]
    if moved:
        yield f"Moved{_more(len(query.moved), len(moved))}:"
        for each in moved:
            yield _moved_line(each, wide, query.change is not None)
            yield from _because(each, wide)
    flips = sorted(query.flips or (), key=lambda flip: -abs(flip.worth))
    shown = flips if everything else flips[:MOST_FLIPS]
    if shown:
        yield f"Flips that the measure feels{_more(len(flips), len(shown))}:"
        titles = {each.docid: each.title for each in query.documents}
        yield from (_flip_line(flip, titles, wide) for flip in shown)


def moves_lines(moves: TuningMoves, width: int | None = None) -> Iterator[str]:
    """What a tuning moved, in short: the queries, and the documents that moved most in each."""
    wide = min(max(width or screen_width(), 60), WIDEST)
    if not (moves.helped or moves.hurt):
        return
    yield moves.title
    for query in (*moves.helped, *moves.hurt):
        figures = f"{query.before:.4f} -> {query.after:.4f} ({query.change:+.4f})"
        yield f"  {_fill(_name(query), wide - 3 - len(figures))} {figures}"
        for each in query.moved[:BRIEFLY]:
            reason = _reason(each.because[0], wide // 4) if each.because else ""
            line = _moved_line(each, wide - 4 - (cell_len(reason) + 2 if reason else 0), gains=False)
            yield f"    {line}  {reason}".rstrip()
    if any(each.because for query in (*moves.helped, *moves.hurt) for each in query.documents):
        yield REASONS
    yield from moves.notes


def _name(query: QueryDiff) -> str:
    return f"{query.qid}: {query.text}" if query.text else query.qid


def _figures(query: QueryDiff) -> str:
    overlap = f"overlap {query.overlap:.4f}"
    if query.before is None or query.after is None:
        return overlap
    return f"{query.before:.4f} -> {query.after:.4f} ({query.after - query.before:+.4f}), {overlap}"


def _more(total: int, shown: int) -> str:
    return f" ({shown} of {total})" if shown < total else ""


def _label(label: float | None) -> str:
    return "-" if label is None else f"{label:.3g}"


def _rank(rank: int | None) -> str:
    return "-" if rank is None else str(rank)


def _fill(text: str, width: int) -> str:
    """Text shortened or padded to a width."""
    return set_cell_size(shortened(text, width), width)


def _document(docid: str, title: str, width: int) -> str:
    """The id of a document and its title; a long id leaves room for the title."""
    name = shortened(docid, max(width // 2, 8) if title else width)
    return shortened(f"{name} {title}" if title else name, width)


def _side_by_side(query: QueryDiff, wide: int) -> Iterator[str]:
    """Rank by rank: label and document before; label, document and earlier rank after."""
    before, after = query.lists
    labels = max((len(_label(each.label)) for each in query.documents), default=1)
    ranks = max((len(_rank(each.before)) for each in query.documents), default=1)
    number = max(len(str(query.top)), 2)
    room = wide - number - 2 - 2 * (labels + 1) - 3 - (ranks + 3)
    left = room // 2
    yield f"{'':{number}}  {_fill('before', left + labels + 1)} | {'after'}"
    for i in range(max(len(before), len(after))):
        one, other = (side[i] if i < len(side) else None for side in (before, after))
        cells = _cell(one, left, labels), _cell(other, room - left, labels)
        came = "" if other is None or not other.moved else f" <{_rank(other.before):>{ranks}}"
        yield f"{i + 1:>{number}}  {cells[0]} | {cells[1]}{came}".rstrip()


def _cell(each: Moved | None, room: int, labels: int) -> str:
    if each is None:
        return " " * (room + labels + 1)
    return f"{_label(each.label):>{labels}} {set_cell_size(_document(each.docid, each.title, room), room)}"


def _moved_line(each: Moved, wide: int, gains: bool) -> str:
    """Ranks, label, gain, document."""
    gain = "" if not gains or each.gain is None else f"  {each.gain:+.4f}"
    start = f"{_rank(each.before):>4} -> {_rank(each.after):>4}  label {_label(each.label)}{gain}  "
    return start + _document(each.docid, each.title, wide - len(start))


def _reason(reason: Reason, width: int) -> str:
    return f"{shortened(str(reason.part), width)} {reason.change:+.2f}"


def _because(each: Moved, wide: int) -> Iterator[str]:
    """Why it moved: the parts of its score whose margin over those that it swapped with changed most."""
    if each.because:
        first, *others = (_reason(reason, 40) for reason in each.because[:MOST_REASONS])
        line = f"{'':14}by {first}"
        for other in others:
            line += f", {other}" if cell_len(line) + 2 + cell_len(other) <= wide else ""
        yield line


def _flip_line(flip: Flip, titles: dict[str, str], wide: int) -> str:
    """What it was worth, where, who and whom."""
    start = f"  {flip.worth:+.4f}  rank {flip.rank:>3}  "
    if flip.up is None or flip.down is None:
        docid, label = (flip.up, flip.up_label) if flip.down is None else (flip.down, flip.down_label)
        what = "enters the list" if flip.down is None else "leaves the list"
        rest = f" ({_label(label)}) {what}"
        return start + _document(docid or "", titles.get(docid or "", ""), wide - len(start) - len(rest)) + rest
    up_label, down_label = f" ({_label(flip.up_label)}) over ", f" ({_label(flip.down_label)})"
    room = (wide - len(start) - len(up_label) - len(down_label)) // 2
    up, down = (_document(docid, titles.get(docid, ""), room) for docid in (flip.up, flip.down))
    return f"{start}{up}{up_label}{down}{down_label}"
