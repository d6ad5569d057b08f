"""Templates with alternatives and optional parts, and the words the stories are made of.

In a template [a|b] is one of its alternatives, <a> may be left out, {key} is a word of the story.
"""

import functools


@functools.lru_cache(maxsize=None)
def parse(template):
    tree, at = _sequence(template, 0, "")
    if at != len(template):
        raise ValueError(f"stray {template[at]!r} at {at} in {template!r}")
    return tree


def _sequence(text, at, ends):
    """A list of strings and (kind, alternatives) up to one of the characters in ends."""
    out, plain = [], ""
    while at < len(text) and text[at] not in ends:
        c = text[at]
        if c in "]>" or (c == "|" and not ends):
            raise ValueError(f"stray {c!r} in {text!r}")
        if c not in "[<":
            plain += c
            at += 1
            continue
        if plain:
            out.append(plain)
            plain = ""
        close, options = ("]" if c == "[" else ">"), []
        while True:
            part, at = _sequence(text, at + 1, "|" + close)
            options.append(part)
            if at >= len(text):
                raise ValueError(f"open {c!r} in {text!r}")
            if text[at] == close:
                break
        out.append((c, options))
        at += 1
    if plain:
        out.append(plain)
    return out, at


def expand(template, rng, words, keep=0.6):
    """One text of the template; optional parts stay with probability keep."""
    return "".join(_pieces(parse(template), rng, keep)).format_map(words)


def _pieces(tree, rng, keep):
    for node in tree:
        if isinstance(node, str):
            yield node
        elif node[0] == "[" or rng.random() < keep:
            yield from _pieces(rng.choice(node[1]), rng, keep)


def a(noun):
    return ("an " if noun[0] in "aeiouAEIOU" and not noun.startswith(("uni", "one")) else "a ") + noun


FEMALE = """Anna Mia Lily Clara Rosa Nora Ella Ruby Ivy Hazel Daisy Molly Tess Pippa Wren Willa Luna Stella Maya Zoe
Ada Bella Cora Dora Edith Flora Greta Holly Iris Jenny Kate Lucy Mabel Nell Olive Penny Rita Sally Tilly Una
Vera Wendy Amy Beth Cleo Emma Fay Grace Hattie Ida Juno Kira Lena Mina Nina Opal Poppy Rose Sofia Thea""".split()
MALE = """Tom Ben Max Sam Leo Finn Oscar Hugo Jack Felix Theo Otto Milo Noah Owen Pip Rory Toby Ned Walter
Adam Basil Carl Dan Eli Frank George Harry Ivan Jasper Karl Luke Martin Nico Oliver Paul Quinn Ralph Simon Tim
Victor Will Arlo Barney Casper Dexter Ernest Fred Gus Henry Igor Jonas Kit Louis Mark Nat Peter Rufus Silas Ted""".split()

# Kinds of heroes: f and m fix the pronoun; the others go with either.
ANIMALS = """fox rabbit bear mouse cat dog owl hedgehog squirrel duck turtle frog elephant lion goat sheep crow badger
otter penguin pony horse pig tiger wolf donkey kitten puppy bee ant snail beaver mole deer monkey goose swan sparrow
robin crab seal parrot lizard spider butterfly camel giraffe panda raccoon toad hare""".split()
RARE_ANIMALS = """dinosaur octopus whale shark dolphin jellyfish crocodile kangaroo koala zebra hippo rhino bat weasel eagle
hawk peacock flamingo ostrich llama yak moose lynx leopard cheetah hamster gerbil guinea-pig starfish lobster worm beetle
dragonfly ladybird cricket moth salamander gecko python walrus reindeer buffalo chicken rooster cow bull calf lamb""".split()
WONDERS = ["dragon", "robot", "giant", "fairy", "ghost", "unicorn", "elf", "troll", "gnome", "computer", "mermaid", "alien",
           "snowman", "vampire", "monster", "scarecrow", "phoenix", "goblin"]
PEOPLE = {
    "girl": "f", "boy": "m", "princess": "f", "prince": "m", "king": "m", "queen": "f", "witch": "f", "wizard": "m",
    "knight": "", "sailor": "", "farmer": "", "baker": "", "gardener": "", "shepherd": "", "clockmaker": "",
    "fisherman": "m", "pirate": "", "painter": "", "tailor": "", "teacher": "", "miller": "", "astronaut": "",
    "librarian": "", "inventor": "", "musician": "", "doctor": "", "student": "", "carpenter": "", "cook": "",
    "lighthouse keeper": "", "mermaid": "f", "programmer": "", "nurse": "", "firefighter": "", "pilot": "", "scientist": "", "spy": "", "thief": "", "mayor": "", "postman": "m", "hunter": "", "monk": "m", "poet": "", "writer": "", "dancer": "", "singer": "", "merchant": "", "captain": "", "soldier": "", "mother": "f", "father": "m", "engineer": "",
    "explorer": "", "detective": "", "grandmother": "f", "grandfather": "m",
}
YOUNG = ["little", "small", "young", "shy", "clever", "curious", "cheerful", "gentle", "quiet", "brave", "kind", "lively"]
TRAITS = {
    "curious": "asked questions from morning to night", "shy": "spoke in a very quiet voice",
    "cheerful": "sang while working", "clever": "could solve almost any puzzle",
    "gentle": "never hurt a fly", "quiet": "liked to listen more than to talk",
    "brave": "was not afraid of anything, or almost anything", "kind": "always had a good word for everyone",
    "lively": "could not sit still for a minute", "careful": "looked at everything twice",
    "stubborn": "never gave up", "dreamy": "often looked up at the clouds",
}

# Places: noun, where, to where, what it is like, three spots in it.
PLACES = [
    ("forest", "in the forest", "into the forest", "The trees stood close together, and the light between them was green.",
     ["under an old oak", "behind a mossy stone", "beside the stream"]),
    ("village", "in a small village", "to the village", "The houses had red roofs, and everybody knew everybody.",
     ["behind the church", "next to the well", "in the baker's yard"]),
    ("farm", "on a farm", "to the farm", "There were wide fields, and in the morning the air smelled of hay.",
     ["in the barn", "behind the hen house", "under the apple tree"]),
    ("castle", "in an old castle", "to the castle", "It had seven towers and more stairs than anyone could count.",
     ["in the highest tower", "behind the throne", "down in the cellar"]),
    ("mountain", "on a high mountain", "up the mountain", "The wind was strong there, and the valley looked like a toy.",
     ["in a small cave", "beside the waterfall", "on a flat rock"]),
    ("sea", "by the sea", "down to the sea", "All day long the waves rolled over the sand.",
     ["on the beach", "between the rocks", "under an old boat"]),
    ("island", "on a small island", "across the island", "There was water on all sides, and the gulls were never silent.",
     ["on the western shore", "under a palm tree", "behind the dunes"]),
    ("garden", "in a large garden", "into the garden", "Roses climbed over the wall, and bees hummed in the lavender.",
     ["behind the roses", "under the pear tree", "in the old shed"]),
    ("town", "in a busy town", "into town", "The streets were full of carts, and a clock struck every hour.",
     ["in the market square", "under the bridge", "behind the town hall"]),
    ("valley", "in a wide valley", "through the valley", "A slow river ran through it, and the grass was as soft as a carpet.",
     ["beside the river", "under a willow", "near the old mill"]),
    ("lighthouse", "in a white lighthouse", "to the lighthouse", "At night its light turned round and round over the dark water.",
     ["at the top of the stairs", "behind the great lamp", "on the rocks outside"]),
    ("desert", "at the edge of a desert", "into the desert", "The sand was golden, and the nights were full of stars.",
     ["beside the well", "in the shadow of a rock", "behind the last dune"]),
    ("library", "in an old library", "to the library", "The shelves reached up to the ceiling, and it smelled of paper.",
     ["behind the tallest shelf", "under the reading table", "in a dusty corner"]),
    ("school", "near a little school", "to the school", "A bell rang every morning, and the windows were full of drawings.",
     ["in the yard", "under the stairs", "behind the piano"]),
    ("meadow", "in a sunny meadow", "across the meadow", "Poppies grew there, and the grasshoppers played all summer.",
     ["under a big leaf", "beside the pond", "near the fence"]),
    ("moon", "on the moon", "across the moon", "Everything was silver there, and one could jump as high as a house.",
     ["in a round crater", "behind a grey hill", "beside the landing place"]),
    ("harbour", "in a harbour", "down to the harbour", "Ships came and went, and the ropes smelled of tar.",
     ["at the end of the pier", "behind the fish barrels", "in an empty boat"]),
    ("lake", "beside a quiet lake", "to the lake", "In the morning the water was as smooth as glass.",
     ["under the landing stage", "in the reeds", "on the far bank"]),
    ("jungle", "in the jungle", "into the jungle", "The leaves were as big as umbrellas, and parrots called from tree to tree.",
     ["under a giant leaf", "beside the brown river", "in a hollow tree"]),
    ("city", "in a great city", "through the city", "The houses were so high that the sun came late to the streets.",
     ["in the park", "on the roof", "beside the fountain"]),
    ("river", "beside a river", "along the river", "The water sang over the stones all day.",
     ["under the bridge", "in the reeds", "on a small sandbank"]),
    ("cave", "near a deep cave", "into the cave", "It was cool inside, and every sound came back twice.",
     ["behind a pillar of stone", "beside the underground pool", "near the entrance"]),
    ("north", "in the far north", "over the snow", "Snow lay on everything, and in winter the sky danced in green light.",
     ["behind a wall of ice", "under a fir tree", "beside the frozen lake"]),
    ("hill", "on a green hill", "up the hill", "From the top one could see seven villages.",
     ["under the lonely tree", "behind the stone wall", "near the top"]),
    ("space station", "on a space station", "through the space station", "The earth shone blue in every window.",
     ["in the engine room", "behind the water tank", "in the little greenhouse"]),
]
PLACE_WORDS = {p[0]: p for p in PLACES}

OBJECTS = """kite lantern key bell book map hat scarf ball drum flute clock mirror box ring coin basket blanket umbrella
teapot compass shell feather button spoon letter painting doll bicycle violin whistle necklace crown candle pen watch
marble telescope pillow boot glove cup ladder wheel rope trumpet guitar puzzle sword shield lamp""".split()
RARE_OBJECTS = """toaster spaceship rocket train car truck bus ship submarine airplane balloon camera radio telephone computer
keyboard screen chip server candle bottle barrel hammer saw needle thread carpet curtain window door chair table stool
bench bed cradle pot pan kettle fork knife plate bowl jar bucket broom brush comb soap towel sock shoe slipper coat dress
shirt belt mask wig wand broomstick potion cauldron crystal diamond pearl ruby emerald statue vase fan flag tent sail anchor
oar net hook arrow bow spear helmet saddle horn harp piano tuba accordion cymbal puppet toy robot teddy-bear dice card
notebook pencil eraser ruler globe magnet battery lightbulb torch match log stone pebble leaf acorn chestnut flower
snowflake icicle rainbow star cookie sandwich pizza pancake muffin apple orange banana pear cherry carrot potato onion
mushroom egg pumpkin lemon sausage cheese cake""".split()
LOOKS = ["red", "blue", "green", "golden", "silver", "old", "tiny", "shiny", "wooden", "striped", "yellow", "beautiful"]
FOODS = ["loaf of bread", "honey cake", "apple pie", "pot of soup", "basket of berries", "bag of nuts", "plum cake",
         "piece of cheese", "jar of honey", "pear tart"]
BUILT = ["boat", "kite", "bridge", "treehouse", "raft", "cart", "tower", "swing", "flying machine", "windmill", "sledge"]
SKILLS = [("play the flute", "tune", "played"), ("bake bread", "loaf", "baked"), ("read", "page", "read"),
          ("paint", "picture", "painted"), ("dance", "dance", "danced"), ("sing", "song", "sang"),
          ("write", "letter", "wrote"), ("play the violin", "tune", "played")]
FEARS = [("the dark", "the night was black", "lamp"), ("thunder", "thunder rolled over the hills", "storm"),
         ("deep water", "the water was deep and cold", "water"), ("high places", "the wall was high and steep", "climb"),
         ("strangers", "nobody there was a friend yet", "stranger")]
FLOWERS = ["rose", "sunflower", "apple tree", "bean", "tulip", "pumpkin", "cherry tree", "lily", "pear tree"]
