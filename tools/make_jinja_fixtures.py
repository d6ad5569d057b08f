#!/usr/bin/env python3
"""Writes tests/fixtures/jinja/cases.json: small templates and what Python's jinja2 makes of them in
the environment that chat templates get. src/jinja/cases_test.cpp compares our interpreter with it.

    tools/make_jinja_fixtures.py [FILE]
"""
import json
import pathlib
import sys

from compare_templates import environment, expected

DATA = {
    "s": "Hello, World", "u": "Grüße, 世界 🦊", "e": "", "n": 7, "neg": -3, "f": 2.5, "t": True, "no": None,
    "l": [3, 1, 2], "w": ["b", "A", "c"], "d": {"b": 1, "a": [1, 2], "items": "mine"}, "x": "<&>'\"",
    "m": [{"role": "user", "content": "q1", "k": 1}, {"role": "assistant", "content": "a1", "k": 2},
          {"role": "user", "content": "q2"}],
    "big": 18446744073709551615, "tree": [{"v": 1, "c": [{"v": 2, "c": []}, {"v": 3, "c": [{"v": 4, "c": []}]}]}],
    "nested": {"a": {"b": [{"c": "deep"}]}},
}

# One expression each, printed.
EXPRESSIONS = r"""
1 + 2 * 3 - 4
7 // 2, -7 // 2, 7 % 3, -7 % 3, 7 / 2
2 ** 10, 2 ** -1, -2 ** 2, 2 ** 3 ** 2
1.0, 1e16, 1e15, 1e-5, 0.0001, 1.5e300, 100000.0, 1/3
1 == 1.0, true == 1, '1' == 1, none == false, [] == [], {} == {}, [1] == [1.0]
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2 != 1
'a' < 'b', [1, 2] < [1, 3], 'Z' < 'a'
1 < 'a'
none < 1
'a' + 1
'a' ~ 1 ~ none ~ true ~ 1.0 ~ [1, 'x']
'ab' * 3, 3 * 'ab', [1] * 2, 'x' * -1
[1] + [2], (1,) + (2,)
[1] + (2,)
not 1, not '', not none, not [], not {}
1 and 2, 0 and 2, 1 or 2, '' or 'x', none or 0
'x' if true else 'y', 'x' if false
('x' if false) is defined
1 if 0 else 2 if 0 else 3
s[0], s[-1], s[1:4], s[:3], s[-3:], s[::-1], s[::2], s[10:2:-3], s[100:], s[5:2]
u[1], u[-1], u[0:5], u[::-1], u|length
l[0], l[-1], l[1:], l[::-1], l[5], l[:0]
l[5].x
d.a, d['a'], d.b, d['items'], d.missing, d['missing'] is undefined
d.items is string, d['get'] is callable
d.missing.more
missing.more
missing
missing is defined, missing is undefined, s is defined, missing|default('d'), missing|d
missing + 1
missing == missing, missing == none
missing|length, missing|list, missing|join, missing|upper, missing|trim
missing()
no.x, no['x']
no|length
no|default('x'), no|default('x', true), e|default('x', boolean=true), ''|default('x')
n.x is defined, n.xyz is defined
true, false, none, True, False, None
[true, none, 1.5, 'it''s', "q'q", 'a"b', 'a\'b"c', '\n\t\\', '\x00\x7f', 'é\u200b世']
{'a': 1, 2: 'b', none: true, 1.5: [], (1, 2): {}}
(1,), (), (1, 2), [(1, 'a')]
'\x41\u00e9\U0001F600\101\q\
z'
0x1f, 0b101, 0o17, 1_000, 1_0.5
big, big + 1, -big, big * 2
s.upper(), s.lower(), s.title(), s.capitalize(), s.swapcase()
s|upper, s|lower, s|title, s|capitalize, 'mIxed-case (word) x'|title, 'ß'|upper, 'ÄÖ'|lower
'they''re bill''s'.title(), 'a1b c'.title()
'  x '.strip() ~ '|' ~ '  x '.lstrip() ~ '|' ~ '  x '.rstrip() ~ '|'
'xxaxx'.strip('x'), 'abcba'.lstrip('ab'), 'abcba'.rstrip('ab'), '\u3000 a\u00a0'.strip()
'  x '|trim ~ '|', 'xxaxx'|trim('x'), 5|trim, none|trim
'a,b,,c'.split(','), 'a b  c'.split(), ' a b '.split(' '), 'a,b,c'.split(',', 1), ''.split(), ''.split(',')
'a b  c '.split(none, 1), ' a b c '.rsplit(none, 1), 'a,b,c'.rsplit(',', 1), 'aXXb'.split('XX')
'a'.split('')
'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('-'), 'abc'.rpartition('-')
'a\nb\r\nc\n'.splitlines(), 'a\nb'.splitlines(true), ''.splitlines()
s.startswith('He'), s.endswith('ld'), s.startswith(('x', 'H')), s.startswith('l', 2), s.endswith('Hello', 0, 5)
s.find('o'), s.rfind('o'), s.find('z'), s.index('W'), s.count('l'), u.find('世'), 'aaa'.count('aa'), 'ab'.count('')
s.index('zz')
s.replace('l', 'L'), s.replace('l', 'L', 1), 'aaa'.replace('', '-'), s|replace('o', '0'), 5|replace('5', 'five')
', '.join(w), '-'.join('abc'), ''.join([])
','.join([1])
l|join(', '), m|join('/', attribute='content'), 'abc'|join('.'), []|join, [1, none, true]|join('|')
s.removeprefix('Hello'), s.removesuffix('World'), s.removeprefix('x')
'7'.zfill(3), '-7'.zfill(4), 'a'.ljust(3) ~ '|', 'a'.rjust(3, '*'), 'a'.center(4) ~ '|', 'ab'.center(5, '*'), 'a'|center(6) ~ '|'
'1'.isdigit(), 'a1'.isalnum(), 'a'.isalpha(), ' '.isspace(), ''.isdigit(), 'A'.isupper(), 'a b'.islower(), 'aB'.islower(), '世'.isalpha()
'{} {} {}'.format(1, 'a', none), '{0}{1}{0}'.format('a', 'b'), '{x}-{y}'.format(x=1, y='z'), '{{}}'.format()
'{:>5}|{:<5}|{:^5}|{:05d}|{:.2f}|{:,}|{:x}|{:+d}'.format('a', 'b', 'c', 42, 3.14159, 1234567, 255, 5)
'{:*^9}|{:10.3f}|{!r}|{:%}'.format('mid', 2.0, 'q', 0.25)
'{a[0]} {b.c}'.format(a=l, b={'c': 5})
'{}'.format()
'%s and %d and %.2f and %5s|%-5s| %% %x %05d %r' % ('a', 42, 3.14159, 'r', 'l', 255, 7, 'q')
'%(a)s %(b)d' % {'a': 'x', 'b': 2}
'%s' % 'one', '%s' % [1, 2]
'%s %s' % 'one'
'%d' % 'x'
'%s=%s'|format('k', 1), '%(a)s'|format(a=5)
l|sort, l|sort(reverse=true), w|sort, w|sort(case_sensitive=true), m|sort(attribute='content')|map(attribute='content')|list
[1, 'a']|sort
l|min, l|max, w|min, []|max is defined, l|sum, m[:2]|sum(attribute='k'), [[1], [2]]|sum(start=[])
l|first, l|last, []|first is defined, 'abc'|first, 'abc'|last, l|reverse|list, 'abc'|reverse
l|length, s|length, d|length, u|count
5|length
[1, 1, 2, 'a', 'A']|unique|list, ['a', 'A']|unique(case_sensitive=true)|list
d|dictsort, {'b': 1, 'A': 2}|dictsort, {'b': 1, 'a': 2}|dictsort(by='value'), {'b': 1, 'a': 2}|dictsort(reverse=true)
d|items|list, d.items()|list, d.keys()|list, d.values()|list, d|list, missing|items|list
5|items|list
d.get('a'), d.get('zz'), d.get('zz', 5), 'a' in d, 'zz' in d, 'zz' not in d
m|map(attribute='role')|list, m|map(attribute='k')|list, m|map(attribute='k', default=0)|list, w|map('upper')|list, l|map('string')|join('+')
nested|map('length')|list, [nested]|map(attribute='a.b.0.c')|list
m|selectattr('role', 'equalto', 'user')|map(attribute='content')|list, m|rejectattr('role', 'eq', 'user')|list|length
m|selectattr('k')|list|length, m|selectattr('k', 'defined')|list|length, m|rejectattr('k', 'defined')|map(attribute='content')|list
[1, 2, 3, 4]|select('odd')|list, [1, 2, 3, 4]|reject('even')|list, [0, 1, '']|select|list, [1, 2, 3]|select('gt', 1)|list, [1, 2]|select('in', [2])|list
no|select('odd')|list, ''|map('upper')|list
m|selectattr('role', 'equalto', 'user')|length
(m|selectattr('role', 'equalto', 'user')) is iterable, (m|map(attribute='role')) is sequence
m|groupby('role')|length, (m|groupby('role'))[0].grouper, (m|groupby('role'))[0].list|length, (m|groupby('role'))[1][0]
[1, 2, 3, 4, 5]|batch(2)|list, [1, 2, 3]|batch(2, 'x')|list, [1, 2, 3, 4, 5]|slice(2)|list
'5'|int, 'x'|int, '0x1f'|int(base=16), '3.7'|int, 3.9|int, -3.9|int, 'x'|int(9), none|int, ' 12 '|int, true|int, '1e3'|int
'1.5'|float, 'x'|float, 2|float, 'x'|float(1.0), '1e3'|float, none|float
2.567|round(2), 2.5|round, 3.5|round, 2.1|round(method='ceil'), 2.9|round(0, 'floor'), 7|round, 1234.5678|round(1)
-3|abs, 2.5|abs, neg|abs
s|string, 5|string, none|string, l|string, true|string
x|escape, x|e, x|safe, (x|safe) + '<', ('<'|escape) + '<', x|forceescape, ('a'|safe) ~ '<', (x|safe)|upper, (x|safe)|replace('&', '<')
s|wordcount, 'a\nb\n\nc'|indent, 'a\nb'|indent(2, true), 'a\n\nb'|indent(2, blank=true), 'a\nb'|indent('> ')
'a long sentence of words'|truncate(12), 'a long sentence of words'|truncate(12, true), 'short'|truncate(12), 'abcdefghij'|truncate(5, true, '', 0)
d|tojson, l|tojson, s|tojson, u|tojson, none|tojson, true|tojson, 1.5|tojson, x|tojson, '\n\t\b\f\r\x01\x7f"\\/'|tojson
d|tojson(indent=2), []|tojson(indent=2), {}|tojson(indent=2), [[], {}]|tojson(indent=1), d|tojson(indent='--')
d|tojson(sort_keys=true), d|tojson(separators=(',', ':')), u|tojson(ensure_ascii=true), d|tojson(indent=2, separators=(';', '='))
{1: 2, none: 3, true: 4, 1.5: 5}|tojson, (1, 2)|tojson, big|tojson, 1e16|tojson, 1e100|tojson
missing|tojson
range|tojson
range(3)|list, range(1, 4)|list, range(5, 0, -2)|list, range(0)|list, range(3), range(1, 5, 2), range(3)|length, range(5)[2]
range(1000000)|list
range(1, 5, 0)
dict(a=1, b=2), dict([('x', 1)]), dict(d, b=5)
namespace(a=1).a, namespace({'b': 2}).b
[1, 2] is iterable, 'x' is iterable, 5 is iterable, d is iterable, missing is iterable, none is iterable
[1] is sequence, 'x' is sequence, d is sequence, 5 is sequence, missing is sequence, d.items() is sequence, range(3) is sequence
d is mapping, l is mapping, s is string, 5 is string, 5 is number, true is number, 2.5 is number, '5' is number
5 is integer, true is integer, 5.0 is integer, 2.5 is float, 5 is float, true is boolean, 1 is boolean, 0 is false, false is false, true is true, 1 is true
none is none, missing is none, 0 is none, none is not none, 5 is not none
3 is odd, 4 is even, 6 is divisibleby(3), 6 is divisibleby 4, 3 is eq 3, 3 is ne(4), 3 is lt 4, 3 is ge 4, 'a' is equalto 'a'
1 is in [1, 2], 'a' is in 'abc', 5 is not in l, 5 not in l, 'He' in s, 3 in l
1 in 'abc'
1 in 5
1 in none
1 in missing
'ABC' is upper, 'abc' is lower, 'aB' is lower, none is sameas none, 5 is sameas 5, range is callable, s is callable
s.nomethod()
s.__class__
''.__class__.__mro__
s['__class__']
d.pop('a')
d.update({'z': 1})
l.append(5)
l.index(2), l.count(1), (1, 2).index(2)
l.index(99)
{}['x'] is defined, {'a': {'b': 1}}['a']['b'], {1: 'x'}[1], {true: 'x'}[1], {1.0: 'y'}[1]
{[1]: 2}
not missing, missing and 1, missing or 'x', (missing or {}).x is defined
l and l[0], d and d.a and d.a[0]
1 if missing else 2
s[1:'x']
l['a'] is defined, l.a is defined, s.a is defined
1 +
(1
[1, 2
'abc
{{ 1 }
5 is
5|
a b
1 = 2
f(x=1, 2)
f(**a, *b)
-'a'
+5, -n, - n, --5, +true
'a' 'b' "c"
'%' ~ '%', '{%' ~ '%}'
strftime_now('%d %B %Y, %H:%M:%S %%'), strftime_now('')
raise_exception('a message: ' ~ n)
raise_exception()
1 / 0
1 % 0
1.5 // 0
cycler(1, 2).next(), joiner('-')()
"a" if "a" in "abc" and not "z" in "abc" else "b"
l | map('int') | sum, (l|sort)[0], (l|sort|first), l|sort|join(',')|upper
d['a'][0], nested.a.b[0].c, nested['a'].b.0.c
m[0].content + '\n' + m[1]['content']
loop is defined, loop
(1, 2)[0], (1, 2) == (1, 2), (1, 2) == [1, 2]
1, 2
"\u00e9"|length, 'e\u0301'|length
10 ** 20, 2 ** 64
1.0 * 3, 3 * 1.5, 7 - 2.5, 1e308 * 10, -1e308 * 10
0.1 + 0.2, 1e22, 123456789012345680.0, 5e-324, 1.7976931348623157e308
7.0 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, 2.0 ** 0.5
"""

# Whole templates.
TEMPLATES = r"""
{% for i in l %}{{ i }}{% if not loop.last %},{% endif %}{% endfor %}
{% for i in l %}{{ loop.index }}/{{ loop.index0 }}/{{ loop.revindex }}/{{ loop.revindex0 }}/{{ loop.first }}/{{ loop.last }}/{{ loop.length }};{% endfor %}
{% for i in l %}{{ loop.previtem }}<{{ i }}>{{ loop.nextitem }} {% endfor %}
{% for i in l %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}
{% for i in [1,1,2] %}{{ loop.changed(i) }}{{ loop.cycle('a','b') }} {% endfor %}
{% for i in [] %}x{% else %}none{% endfor %}
{% for i in missing %}x{% else %}none{% endfor %}
{% for i in no %}x{% endfor %}
{% for i in 5 %}x{% endfor %}
{% for i in l if i > 1 %}{{ i }}:{{ loop.index }}:{{ loop.length }}:{{ loop.last }} {% endfor %}
{% for i in l if i > 9 %}x{% else %}empty{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}
{% for k in d %}{{ k }}{% endfor %}
{% for a, b in [[1, 2], [3, 4]] %}{{ a + b }} {% endfor %}
{% for a, b in [[1, 2, 3]] %}{{ a }}{% endfor %}
{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for c in 'añb' %}[{{ c }}]{% endfor %}
{% for i in range(10) %}{% if i == 3 %}{% continue %}{% endif %}{% if i == 6 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% for i in l %}{% for j in l %}{{ i * j }}{% if loop.last %};{% endif %}{% endfor %}{% endfor %}
{% for i in l %}{% for j in l %}{% if j == 1 %}{% break %}{% endif %}{{ j }}{% endfor %}|{% endfor %}
{% break %}
{% if x %}{% continue %}{% endif %}
{% for n in tree recursive %}{{ n.v }}@{{ loop.depth }}[{{ loop(n.c) }}]{% endfor %}
{% for i in l %}{{ loop(l) }}{% endfor %}
{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(x=1) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }} {{ ns.y is defined }}
{% set d.x = 1 %}
{% set a, b = 1, 2 %}{{ a }}{{ b }}
{% set a = 1, 2 %}{{ a }}
{% set t %}block {{ n }}{% endset %}[{{ t }}]
{% set t | upper | trim %}  block {{ n }}{% endset %}[{{ t }}]
{% set t %}{% set inner = 5 %}{{ inner }}{% endset %}{{ t }}{{ inner is defined }}
{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}
{% if missing %}a{% elif no %}b{% elif e %}c{% elif [] %}d{% else %}e{% endif %}
{% if t %}{% set z = 1 %}{% endif %}{{ z }}
{% if not t %}{% set z = 1 %}{% endif %}{{ z is defined }}{{ s }}
{% if n is defined and n is number and not n is string %}yes{% endif %}
{% macro m1(a, b=2, c='x') %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m1(1) }} {{ m1(1, 3) }} {{ m1(1, c='y') }} {{ m1(b=5, a=4) }}
{% macro m1(a) %}[{{ a }}]{% endmacro %}{{ m1() }}
{% macro m1(a) %}[{{ a.x }}]{% endmacro %}{{ m1() }}
{% macro m1(a) %}{{ a }}{% endmacro %}{{ m1(1, 2) }}
{% macro m1(a) %}{{ a }}{% endmacro %}{{ m1(1, z=2) }}
{% macro m1(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m1(1, 2, 3, k=4) }}
{% macro m1(a, b=a ~ '!') %}{{ b }}{% endmacro %}{{ m1('x') }}
{% macro f(n) %}{{ n }}{% if n > 0 %},{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}
{% macro outer() %}{{ y }}{% endmacro %}{% set y = 5 %}{{ outer() }}
{% macro sees() %}{{ n }}{{ i is defined }}{% endmacro %}{% for i in l %}{{ sees() }}{% endfor %}
{% macro sets() %}{% set q = 1 %}{% endmacro %}{{ sets() }}{{ q is defined }}
{% macro m1() %}{{ caller() }}!{% endmacro %}{% call m1() %}body {{ n }}{% endcall %}
{% macro m1(l) %}{% for i in l %}{{ caller(i) }};{% endfor %}{% endmacro %}{% call(i) m1([1, 2]) %}<{{ i }}>{% endcall %}
{% macro m1() %}{{ caller is defined }}{% endmacro %}{{ m1() }}
{% macro m1() %}x{% endmacro %}{% call m1() %}y{% endcall %}
{% macro m1() %}x{% endmacro %}{{ m1.name }}{{ m1 is callable }}{{ m1()|upper }}{{ m1() + 'y' }}
{% filter upper %}abc {{ s }}{% endfilter %}
{% filter replace('a', 'b') | upper %}abc{% endfilter %}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}
{% with %}{% set w2 = 1 %}{{ w2 }}{% endwith %}{{ w2 is defined }}
{% raw %}{{ not }} {% evaluated %}{% endraw %} x
a {# comment {{ x }} #} b
a {#- comment -#} b
{# unclosed
{% raw %} unclosed
{% if t %}unclosed
{% for i in l %}{% endif %}
{% endif %}
{% unknown %}
{% do l %}
{{ '{{' }} {{ "%}" }} {{ '#}' }}
  {% if t %}  
    kept
  {% endif %}  
after
  {%- if t -%}  
    stripped  
  {%- endif +%}
after
{%+ if t %}x{% endif %}
  {%+ if t %}x{% endif %}
  {{- n -}}  y
a
{{ n }}
b
{% set x = 1 %}

{% set y = 2 %}
end
{% for i in l -%}
  {{ i }}
{%- endfor %}
{% if t %}
a
{% else %}
b
{% endif %}
c
x {% if t %}
 y
 {% endif %}
	{% if t %}tab{% endif %}
a{% if t %} b {%- endif %} c {{- 'd' }}
{{ {'a': {'b': 1}} }}{{ {'a': 1}['a'] }}{% set q = {'x': [1, {'y': 2}]} %}{{ q.x[1].y }}
{% generation %}text {{ n }}{% set g = 1 %}{% endgeneration %}{{ g is defined }}
{% for x in m %}{% generation %}{{ x.content }}{% endgeneration %}{% endfor %}
{% set m2 = m[1:] %}{% for x in m2 %}{{ x.role }}{{ loop.index0 }}{% endfor %}
{% set sys = m[0]['content'] if m[0]['role'] == 'system' else 'default' %}{{ sys }}
{% for x in m[::-1] %}{{ x.content }}{% endfor %}
{% for x in m|reverse %}{{ x.content }}{{ loop.last }}{% endfor %}
{% for role, group in m|groupby('role') %}{{ role }}:{{ group|length }};{% endfor %}
{% set ns = namespace() %}{{ ns.x is defined }}{% set ns.x = [] %}{% set ns.x = ns.x + [1] %}{{ ns.x }}
{% set g = m|map(attribute='role') %}{{ g|list }}{{ g|list }}
{% set g = m|map(attribute='role') %}{% if g %}true{% endif %}{{ g|first }}{{ g|first }}
{% for x in m if x.role == 'user' %}{{ loop.index }}{{ x.content }}{% if loop.nextitem is defined %}>{% endif %}{% endfor %}
{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}
{% set j = joiner(', ') %}{% for i in l %}{{ j() }}{{ i }}{% endfor %}
{% print n, s %}
{{ raise_exception('stop <here>') }}
{% if m[0].role != 'system' %}{{ raise_exception("Conversation must begin with 'system'") }}{% endif %}
{{- 'a' -}}   {{- 'b' -}}
{%- set a = 1 -%} {%- set b = 2 %} c
line1
  {#- c -#}
line2
{{ u }}{{ u|tojson }}
{% set loop_count = 0 %}{% for a in l %}{% if loop.index0 == 0 %}{% set first = a %}{% endif %}{{ first }}{% endfor %}
{% for i in l %}{% set z = i %}{% endfor %}{{ z is defined }}
{% for item in m %}{{ item.k is defined and item.k }}|{% endfor %}
{% for key in d %}{{ key }}{% if not loop.last %}, {% endif %}{% endfor %}
{{ m | selectattr('role', 'equalto', 'user') | first }}
{{ (m | selectattr('role', 'equalto', 'nobody') | first) is defined }}
{%- for message in m %}
{%- if message['role'] == 'user' %}
{{- '<|user|>\n' + message['content'] + '<|end|>\n' }}
{%- elif message['role'] == 'assistant' %}
{{- '<|assistant|>\n' + message['content'] + '<|end|>\n' }}
{%- endif %}
{%- endfor %}
{{ s if n else }}
{% set %}
{% for %}
{% if %}{% endif %}
{% macro %}{% endmacro %}
{% macro f(a=1, b) %}{% endmacro %}
{% for 1 in l %}{% endfor %}
{% set 'a' = 1 %}
{% call 5 %}{% endcall %}
{{ n }}
{%
"""


def templates():
    for line in EXPRESSIONS.strip("\n").replace("\\\nz", "\\\0z").split("\n"):
        yield "{{ [" + line.replace("\0", "\n") + "] }}" if "," in line else "{{ " + line + " }}"
    lines = TEMPLATES.strip("\n").split("\n")
    yield from lines
    # Neighbouring lines together, for white space over line ends.
    for i in range(0, len(lines)):
        yield "\n".join(lines[i:i + 4]) + "\n"


def main():
    here = pathlib.Path(__file__).resolve().parent.parent
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else here / "tests/fixtures/jinja/cases.json")
    env = environment()
    cases = []
    for source in dict.fromkeys(templates()):
        try:
            template = env.from_string(source)
        except Exception as error:
            template = error
        kind, text = expected(template, DATA)
        if " at 0x" in text:
            continue
        cases.append([source, kind, text if kind in ("text", "invalid") else ""])
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
    data = json.dumps(DATA, ensure_ascii=False)
    path.write_text(f'{{"context": {data},\n"cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
