#!/usr/bin/env python3
"""Generates the synthetic training text: stories and ChatML dialogues, the same for the same seed.

Usage: synthetic.py OUT_FOLDER [--seed N] [--stories N] [--dialogues N]

Writes stories.txt and dialogues.txt, each document ended by <|endoftext|>, without duplicates.
"""

import argparse
import hashlib
import pathlib
import random

import talk
from grammar import FEMALE, MALE, OBJECTS, PEOPLE, PLACES, RARE_OBJECTS, a, expand
from stories import Wish, make_story, pick_kind
from tokenizer import END, START, STOP

FACTS = pathlib.Path(__file__).with_name("facts.txt")


def read_facts():
    facts = []
    for block in FACTS.read_text().split("\n\n"):
        fact = {"t": [], "q": [], "a": [], "b": []}
        for line in block.splitlines():
            if line and not line.startswith("#"):
                key, text = line.split(": ", 1)
                fact[key] += text.split(" | ")
        if fact["a"]:
            facts.append(fact)
    return facts


def roughen(rng, text):
    """A question as people type it."""
    if rng.random() < 0.2:
        text = text.rstrip(".?!")
    if rng.random() < 0.2:
        text = text.lower()
    return text


def question(rng, fact):
    if fact["q"] and rng.random() < 0.4:
        return roughen(rng, rng.choice(fact["q"]))
    term = rng.choice(fact["t"])
    template = rng.choice(talk.DEFINITION)
    plural = term.endswith("s") and not term.startswith(("a ", "an ", "the ")) and not term.endswith(("ss", "us", "bias"))
    while (" is" in template or "'s" in template or " does" in template) if plural else " are {t}" in template:
        template = rng.choice(talk.DEFINITION)
    return roughen(rng, template.format(t=term, T=term[0].upper() + term[1:]))


def answer(rng, fact, other=None):
    """An answer, different from the other where there is a choice."""
    options = [x for x in fact["a"] if other is None or not other.startswith(x)]
    text = rng.choice(options)
    details = [x for x in fact["b"] if other is None or x not in other]
    if details and (other is not None or rng.random() < 0.5):
        text += " " + rng.choice(details)
    return text


def fact_turns(rng, fact):
    text = answer(rng, fact)
    turns = [(question(rng, fact), text)]
    if rng.random() < 0.12:
        turns.append((roughen(rng, rng.choice(talk.MORE)), answer(rng, fact, text)))
    return turns


def small_talk_turns(rng):
    if rng.random() < 0.25:
        ask = expand(rng.choice(talk.OFF_TOPIC), rng, {})
        return [(roughen(rng, ask), expand(rng.choice(talk.NO_ANSWER), rng, {}))]
    if rng.random() < 0.08:
        name = rng.choice(FEMALE + MALE)
        reply = rng.choice([f"Hello, {name}! How can I help you?", f"Nice to meet you, {name}!", f"Hello {name}! Would you like to hear a story?"])
        turns = [(expand(rng.choice(talk.NAMES), rng, {"N": name}), reply)]
        if rng.random() < 0.5:
            turns.append((roughen(rng, rng.choice(["What is my name?", "Do you know my name?", "Who am I?"])), f"Your name is {name}."))
        return turns
    ask, reply = rng.choice(talk.SMALL_TALK)
    return [(roughen(rng, expand(ask, rng, {})), expand(reply, rng, {}, 0.5))]


def any_thing(rng):
    return rng.choice(OBJECTS if rng.random() < 0.6 else RARE_OBJECTS)


def story_wish(rng):
    """A wish and the words for it; no words: any story."""
    form = rng.random()
    if form < 0.12:
        return Wish(), ""
    if form < 0.40:
        kind = pick_kind(rng)
        if rng.random() < 0.3:
            girl = PEOPLE.get(kind, rng.choice("fm")) or rng.choice("fm")
            name = rng.choice(FEMALE if girl == "f" else MALE)
            return Wish(kind=kind, name=name), f"{a(kind)} [named|called] {name}"
        return Wish(kind=kind), a(kind)
    if form < 0.55:
        first, second = pick_kind(rng), pick_kind(rng)
        while second == first:
            second = pick_kind(rng)
        return Wish(kind=first, friend_kind=second), f"{a(first)} and {a(second)}"
    if form < 0.70:
        kind, thing = pick_kind(rng), any_thing(rng)
        return Wish(kind=kind, thing=thing), f"{a(kind)} and {a(thing)}"
    if form < 0.78:
        thing = any_thing(rng)
        return Wish(thing=thing), a(thing)
    if form < 0.88:
        place = rng.choice(PLACES)
        kind = pick_kind(rng)
        return rng.choice([(Wish(place=place[0]), f"the {place[0]}"),
                           (Wish(place=place[0], kind=kind), f"{a(kind)} {place[1]}")])
    theme = rng.choice(list(talk.THEMES))
    return Wish(plot=talk.THEMES[theme]), theme


def story_turn(rng, wish, words):
    about = expand(words, rng, {})
    if not words:
        return make_story(rng, wish), roughen(rng, rng.choice(talk.ASK_ANY)), ""
    wish.short = rng.random() < 0.2
    asks = talk.ASK_SHORT if wish.short else talk.ASK_STORY
    intro = rng.choice(talk.INTRO).format(x=about) + "\n\n" if rng.random() < 0.4 else ""
    return make_story(rng, wish), roughen(rng, rng.choice(asks).format(x=about)), intro


def story_question(rng, story):
    w = story.words
    choices = [
        (rng.choice(["What was the name of the {Hkind}?", "What was {Hthekind} called?", "Who is the hero of the story?"]),
         rng.choice(["The {Hkind} was called {H}.", "The name of the {Hkind} was {H}.", "{H}."])),
        (rng.choice(["Where did {H} live?", "Where does the story take place?", "Where did the {Hkind} live?"]), "{H} lived {in_place}."),
        (rng.choice(["Who was {F}?", "Who is {F}?"]), "{F} was {Fplainkind}."),
        (rng.choice(["What was the name of the {Fkind}?", "What was {Fthekind} called?"]), "The {Fkind} was called {F}."),
        (rng.choice(["Who was {H}?", "Who is {H}?"]), "{H} was {Hakind} who lived {in_place}."),
    ]
    if w["Hkind"] == w["Fkind"]:
        choices = [choices[1], choices[2], choices[4]]
    ask, reply = rng.choice(choices)
    return roughen(rng, ask.format_map(w)), reply.format_map(w)


def story_turns(rng, follow=0.6):
    wish, words = story_wish(rng)
    story, ask, intro = story_turn(rng, wish, words)
    turns = [(ask, intro + story.text)]
    while rng.random() < follow and len(turns) < 5:
        what = rng.random()
        if what < 0.2 and sum(len(t[1]) for t in turns) < 3500:
            story = make_story(rng, wish)
            turns.append((roughen(rng, rng.choice(talk.ANOTHER)), story.text))
        elif what < 0.4:
            turns.append((roughen(rng, rng.choice(talk.SHORTER)), story.summary))
        elif what < 0.55:
            turns.append((roughen(rng, rng.choice(talk.MORAL)), f"The story teaches that {story.moral}."))
        elif what < 0.65:
            turns.append((roughen(rng, rng.choice(talk.LIKED)), expand(rng.choice(talk.GLAD), rng, story.words)))
        else:
            turns.append(story_question(rng, story))
    return turns


def dialogue(rng, facts):
    form = rng.random()
    if form < 0.38:
        turns = []
        for _ in range(rng.choice([1, 1, 2, 3])):
            turns += fact_turns(rng, rng.choice(facts))
    elif form < 0.68:
        turns = story_turns(rng)
    elif form < 0.80:
        turns = [t for _ in range(rng.choice([1, 1, 2, 3])) for t in small_talk_turns(rng)]
    else:
        parts = [lambda: fact_turns(rng, rng.choice(facts)), lambda: small_talk_turns(rng), lambda: story_turns(rng, 0.3)]
        hello, thanks = talk.SMALL_TALK[0], talk.SMALL_TALK[9]
        turns = [(expand(hello[0], rng, {}), expand(hello[1], rng, {}))] if rng.random() < 0.5 else []
        for _ in range(rng.choice([1, 2, 3])):
            turns += rng.choice(parts)()
        if rng.random() < 0.3:
            turns.append((expand(thanks[0], rng, {}), expand(thanks[1], rng, {}, 0.5)))
    text = ""
    if rng.random() < 0.4:
        text = f"{START}system\n{rng.choice(talk.SYSTEM)}{STOP}\n"
    for ask, reply in turns:
        text += f"{START}user\n{ask}{STOP}\n{START}assistant\n{reply}{STOP}\n"
    return text


def write(path, number, make):
    seen, size = set(), 0
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(number):
            text = make()
            key = hashlib.md5(text.encode()).digest()
            if key in seen:
                continue
            seen.add(key)
            size += file.write(text + END)
    print(f"{path}: {len(seen)} documents, {size} characters", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stories", type=int, default=50_000)
    parser.add_argument("--dialogues", type=int, default=70_000)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rng, facts = random.Random(args.seed), read_facts()
    print(f"{len(facts)} facts")
    write(args.out / "stories.txt", args.stories, lambda: make_story(rng, Wish(short=rng.random() < 0.15)).text)
    write(args.out / "dialogues.txt", args.dialogues, lambda: dialogue(rng, facts))


if __name__ == "__main__":
    main()
