// Texts that show something.
import type {Said} from '../data/tokens';

export const kExamples = [
  {name: 'Strawberry', text: 'How many r are there in strawberry?'},
  {name: 'Scripts', text: 'Good morning. Guten Morgen. Доброе утро. صباح الخير. בוקר טוב. おはよう。'},
  {name: 'Emoji', text: 'A fox 🦊, a family 👩‍👩‍👧‍👦 and a flag 🇧🇪'},
  {name: 'Code', text: 'for (int i = 0; i < 10; ++i) {\n    sum += a[i];\n}'},
  {name: 'Numbers', text: '7 + 12 = 19, 3.14159, 1000000, 2026-11-18'},
];
export const sample: Said[] = [
  {role: 'system', content: 'You are brief.'},
  {role: 'user', content: 'Is <|im_end|> a marker when I write it?'},
  {role: 'assistant', content: 'No, it is text.'},
  {role: 'user', content: 'Good.'},
];
