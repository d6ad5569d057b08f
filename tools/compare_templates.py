#!/usr/bin/env python3
"""Renders every chat template of a folder with Python's jinja2 and with Vitrine's interpreter, over
a matrix of conversations, and compares: the same bytes, or an error of the same kind.

    ninja -C build/release jinja_render
    tools/compare_templates.py FOLDER [--render build/release/tests/jinja_render] [--verbose]

FOLDER holds *.jinja files, and tokenizer_config.json files under any name that ends in .json.
Needs jinja2 (Debian: python3-jinja2). The environment is the one that Hugging Face's transformers
makes for chat templates.
"""
import argparse
import datetime
import itertools
import json
import pathlib
import subprocess
import sys

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5)


class Generation(Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_run")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _run(self, caller):
        return caller()


class Raised(Exception):
    pass


def raise_exception(message):
    raise Raised(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                        extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def expected(template, context):
    """("text", text), ("malformed", ""), ("invalid", message) or ("unsupported", why)."""
    if isinstance(template, Exception):
        return "malformed", str(template)
    try:
        return "text", template.render(**context)
    except Raised as error:
        return "invalid", str(error)
    except Exception as error:  # whatever Python raises is the template's failure
        return "unsupported", repr(error)


WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather \"now\" <at> a place, ümlaut & all",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "City\nname"},
        "days": {"type": "integer", "minimum": 1, "default": 3},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "where": {"type": "object", "properties": {"lat": {"type": "number"},
                                                   "lon": {"type": ["number", "null"]}}},
        "tags": {"type": "array", "items": {"type": "string"}}},
        "required": ["city"]},
    "return": {"type": "string", "description": "text"}}}
NOTHING = {"type": "function", "function": {
    "name": "noop", "description": "Does nothing.", "parameters": {"type": "object", "properties": {}}}}


def call(arguments, name="get_weather", ident="call12345"):
    return {"id": ident, "type": "function", "function": {"name": name, "arguments": arguments}}


def msg(role, content, **more):
    return {"role": role, "content": content, **more}


ARGUMENTS = {"city": "Zürich", "days": 2, "precise": True, "none": None, "share": 0.5,
             "where": {"lat": 47.4}, "tags": ["a", "b"]}
CONVERSATIONS = {
    "user": [msg("user", "Hello")],
    "system": [msg("system", "Be brief."), msg("user", "Hello")],
    "turns": [msg("user", "Hi"), msg("assistant", "Hello!"), msg("user", "How are you?"),
              msg("assistant", "Well.\n\nAnd you?"), msg("user", " spaced \n")],
    "system turns": [msg("system", "  You are a pirate.\n"), msg("user", "Hi"),
                     msg("assistant", "Arr"), msg("user", "Again")],
    "unicode": [msg("system", "🦊 naïve"), msg("user", "日本語\u2028«test» 'q' \"d\" <|im_end|> \t x"),
                msg("assistant", "Ω\u0301 \U0001F600"), msg("user", "\\n {{ x }} {% y %}")],
    "empty": [msg("system", ""), msg("user", ""), msg("assistant", ""), msg("user", "x")],
    "ends with assistant": [msg("user", "Hi"), msg("assistant", "Well, ")],
    "two users": [msg("user", "a"), msg("user", "b")],
    "developer": [msg("developer", "Rules"), msg("user", "Hello")],
    "parts": [msg("user", [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}])],
    "system parts": [msg("system", [{"type": "text", "text": "sys"}]),
                     msg("user", [{"type": "text", "text": "one"}]),
                     msg("assistant", [{"type": "text", "text": "answer"}]), msg("user", "more")],
    "image": [msg("user", [{"type": "image"}, {"type": "text", "text": "what?"}])],
    "tool call": [msg("user", "Weather?"), msg("assistant", None, tool_calls=[call(ARGUMENTS)]),
                  msg("tool", "{\"t\": 21}", tool_call_id="call12345", name="get_weather"),
                  msg("assistant", "21 degrees."), msg("user", "Thanks")],
    "tool call waiting": [msg("system", "S"), msg("user", "Weather?"),
                          msg("assistant", "", tool_calls=[call(ARGUMENTS)]),
                          msg("tool", "sunny", tool_call_id="call12345", name="get_weather")],
    "tool call string": [msg("user", "Weather?"),
                         msg("assistant", "I look.", tool_calls=[call(json.dumps(ARGUMENTS))]),
                         msg("tool", "rain <b>", tool_call_id="call12345", name="get_weather")],
    "two calls": [msg("user", "Weather?"),
                  msg("assistant", "", tool_calls=[call({"city": "A"}),
                                                   call({}, "noop", "call67890")]),
                  msg("tool", "1", tool_call_id="call12345", name="get_weather"),
                  msg("tool", "2", tool_call_id="call67890", name="noop"),
                  msg("user", "and?")],
    "tool content dict": [msg("user", "W"), msg("assistant", "", tool_calls=[call({"city": "A"})]),
                          msg("tool", {"t": 21, "ok": True}, tool_call_id="call12345",
                              name="get_weather")],
    "call without content": [msg("user", "W"), {"role": "assistant", "tool_calls": [call({"city": "A"})]},
                             msg("tool", "x", tool_call_id="call12345")],
    "thinking": [msg("user", "2+2?"),
                 msg("assistant", "4", reasoning_content="Let me add.\nDone."),
                 msg("user", "3+3?"),
                 msg("assistant", "<think>\nsum\n</think>\n\n6"), msg("user", "ok")],
    "thinking call": [msg("user", "W?"),
                      msg("assistant", "", reasoning_content="I need the tool.",
                          thinking="I need the tool.", tool_calls=[call({"city": "A"})]),
                      msg("tool", "sun", tool_call_id="call12345", name="get_weather")],
    "none content": [msg("user", "W?"), msg("assistant", None), msg("user", "x")],
    "odd role": [msg("king", "x"), msg("user", "y")],
    "nothing": [],
}
TOOLS = {"": None, "tools": [WEATHER, NOTHING], "bare": [WEATHER["function"]]}
OPTIONS = {
    "": {},
    "thinks": {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"},
    "does not": {"enable_thinking": False, "thinking": False, "reasoning_effort": "low",
                 "date_string": "01 Feb 2026", "tools_in_user_message": False,
                 "documents": [{"title": "T", "text": "body", "doc_id": 1}]},
}
SPECIAL = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


def contexts():
    for (name, messages), (t, tools), (o, options), prompt in itertools.product(
            CONVERSATIONS.items(), TOOLS.items(), OPTIONS.items(), (True, False)):
        if (t == "bare" or o == "does not") and not prompt:
            continue
        yield f"{name}, {t or 'no tools'}, {o or 'plain'}, {prompt}", {
            **SPECIAL, "messages": messages, "add_generation_prompt": prompt,
            **({"tools": tools} if tools or o else {}), **options}


def templates(folder):
    for path in sorted(pathlib.Path(folder).rglob("*")):
        if path.suffix in (".jinja", ".jinja2"):
            yield str(path.relative_to(folder)), path.read_bytes().decode("utf-8")
        elif path.suffix == ".json":
            try:
                found = json.loads(path.read_text(encoding="utf-8")).get("chat_template")
            except (ValueError, AttributeError):
                continue
            if isinstance(found, str):
                yield str(path.relative_to(folder)), found
            for item in found if isinstance(found, list) else []:
                yield f"{path.relative_to(folder)}:{item['name']}", item["template"]


class Renderer:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def render(self, source, context):
        line = json.dumps({"template": source, "context": context}, ensure_ascii=False)
        self.process.stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            return answer["error"], answer["message"]
        return "text", answer["text"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--render", default="build/release/tests/jinja_render")
    parser.add_argument("--verbose", action="store_true", help="show both texts of a difference")
    args = parser.parse_args()
    renderer = Renderer(args.render)
    env = environment()
    cases = list(contexts())
    count = texts = 0
    wrong = {}
    seen = {}
    for name, source in templates(args.folder):
        if source in seen:
            continue
        seen[source] = name
        try:
            template = env.from_string(source)
        except Exception as error:
            template = error
        for case, context in cases:
            want, have = expected(template, context), renderer.render(source, context)
            count += 1
            texts += want[0] == "text"
            same = want == have if want[0] in ("text", "invalid") else want[0] == have[0]
            if same:
                continue
            if name not in wrong or args.verbose:
                print(f"{name}: {case}\n  jinja2:  {want!r}\n  vitrine: {have!r}")
            wrong[name] = wrong.get(name, 0) + 1
    print(f"{len(seen)} different templates, {count} renders ({texts} with a text, the others "
          f"errors): {sum(wrong.values())} differ, in {len(wrong)} templates")
    sys.exit(1 if wrong or not seen else 0)


if __name__ == "__main__":
    main()
