// A chat template with tools and reasoning, in a file for --chat-template.
import { rmSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const template = fileURLToPath(new URL(`chat-${process.pid}.jinja`, import.meta.url));
writeFileSync(template, `{{- bos_token }}
{%- for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}
{%- for message in messages %}
  {%- if message.role == 'system' and not loop.first %}{{ raise_exception('system must come first') }}{% endif %}
<|im_start|>{{ message.role }}
{{ message.content or '' }}
  {%- for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{{ '<think>' if enable_thinking is defined and enable_thinking }}{% endif %}
{#- </think> #}`);
process.on("exit", () => rmSync(template));
