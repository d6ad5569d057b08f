"""Short stories with a consistent cast: a plot's beats, filled with heroes, places and things.

make_story(rng, wish) gives a Story: its text, a summary, its moral and the facts one may ask for.
"""

import dataclasses

from grammar import (ANIMALS, BUILT, FEARS, FEMALE, FLOWERS, FOODS, LOOKS, MALE, OBJECTS, PEOPLE, PLACES, PLACE_WORDS,
                     RARE_ANIMALS, RARE_OBJECTS, SKILLS, TRAITS, WONDERS, YOUNG, a, expand)
from plots import CLOSINGS, MORALS, OPENINGS, PLOTS


@dataclasses.dataclass
class Wish:
    """What a story must have; empty: anything."""
    kind: str = ""
    friend_kind: str = ""
    name: str = ""
    thing: str = ""
    place: str = ""
    plot: str = ""
    short: bool = False


@dataclasses.dataclass
class Story:
    text: str
    summary: str
    moral: str
    words: dict
    plot: str
    wish: Wish


def pick_kind(rng):
    return rng.choice(rng.choice([ANIMALS, ANIMALS, ANIMALS, RARE_ANIMALS, list(PEOPLE), list(PEOPLE), WONDERS]))


def person(rng, kind, name, taken):
    sex = PEOPLE.get(kind, "")
    if name in FEMALE:
        sex = "f"
    elif name in MALE:
        sex = "m"
    sex = sex or rng.choice("fm")
    while not name or name in taken:
        name = rng.choice(FEMALE if sex == "f" else MALE)
    forms = ("she", "her", "her", "herself") if sex == "f" else ("he", "him", "his", "himself")
    return name, forms


def cast_words(rng, prefix, kind, name, taken):
    name, (he, him, his, himself) = person(rng, kind, name, taken)
    taken.add(name)
    grown = kind in PEOPLE and kind not in ("girl", "boy", "princess", "prince", "student")
    looks = ["young", "kind", "clever", "cheerful", "gentle", "brave", "quiet"] if grown else YOUNG
    adjective = rng.choice(looks)
    p = prefix
    return {p: name, p + "he": he, p + "him": him, p + "his": his, p + "himself": himself,
            p + "He": he.capitalize(), p + "His": his.capitalize(), p + "kind": kind,
            p + "akind": a(f"{adjective} {kind}"), p + "thekind": f"the {kind}", p + "adj": adjective,
            p + "plainkind": a(kind)}


def place_words(rng, noun):
    place = PLACE_WORDS[noun] if noun else rng.choice(PLACES)
    spots = list(place[4])
    rng.shuffle(spots)
    return {"place": place[0], "in_place": place[1], "In_place": place[1][0].upper() + place[1][1:], "to_place": place[2], "place_is": place[3],
            "spot1": spots[0], "spot2": spots[1], "spot3": spots[2]}


def thing_words(rng, noun):
    noun = noun or rng.choice(OBJECTS if rng.random() < 0.7 else RARE_OBJECTS)
    look = rng.choice(LOOKS)
    food, built = rng.choice(FOODS), noun if noun in BUILT else rng.choice(BUILT)
    skill, fear, flower = rng.choice(SKILLS), rng.choice(FEARS), rng.choice(FLOWERS)
    return {"thing": f"{look} {noun}", "athing": a(f"{look} {noun}"), "noun": noun, "anoun": a(noun),
            "food": food, "afood": a(food), "built": built, "abuilt": a(built), "skill": skill[0],
            "work": skill[1], "did": skill[2], "fear": fear[0], "fear_now": fear[1], "flower": flower,
            "aflower": a(flower)}


def choose_plot(rng, wish):
    if wish.plot:
        return wish.plot
    if wish.thing:
        return rng.choice([p for p in PLOTS if "thing" in PLOTS[p].get("uses", "")])
    return rng.choice(list(PLOTS))


def make_story(rng, wish=None):
    wish = wish or Wish()
    plot_name = choose_plot(rng, wish)
    plot = PLOTS[plot_name]
    taken = set()
    kind = wish.kind or pick_kind(rng)
    friend = wish.friend_kind or pick_kind(rng)
    while friend == kind and not wish.friend_kind:
        friend = pick_kind(rng)
    words = cast_words(rng, "H", kind, wish.name, taken)
    words |= cast_words(rng, "F", friend, "", taken)
    third = rng.choice(["old owl", "old woman", "old man", "wise toad", "old tortoise", "grey goose"])
    words |= cast_words(rng, "T", third, "", taken)
    trait = rng.choice(list(TRAITS))
    words |= {"trait": trait, "habit": TRAITS[trait], "number": rng.choice(["three", "four", "five", "seven"])}
    words |= place_words(rng, wish.place) | thing_words(rng, wish.thing)
    words["day"] = rng.choice(["morning", "evening", "afternoon", "spring day", "summer day", "autumn day", "winter day"])
    keep = 0.1 if wish.short else 0.65
    beats = [rng.choice(OPENINGS)] + plot["beats"]
    paragraphs = [" ".join(expand(beat, rng, words, keep).split()) for beat in beats]
    moral = rng.choice(MORALS[plot_name])
    closing = expand(rng.choice(CLOSINGS), rng, words, keep)
    ending = rng.random()
    if ending < 0.35:
        paragraphs.append(closing)
    elif ending < 0.6 or wish.short:
        paragraphs[-1] += " " + closing
    else:
        paragraphs.append(f"And so {words['H']} learned that {moral}.")
    if wish.short:
        paragraphs = [" ".join(paragraphs)]
    summary = expand(rng.choice(plot["summary"]), rng, words, keep)
    return Story("\n\n".join(p.strip() for p in paragraphs), summary, moral, words, plot_name, wish)
