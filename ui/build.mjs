// After `vite build`: every file of dist/ also as .gz and .br, and the limits of size. Fails above them.
import {readdirSync, readFileSync, statSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {brotliCompressSync, constants, gzipSync} from 'node:zlib';

const kFirst = 60 << 10, kAll = 200 << 10; // bytes, gzip

const files = [];
const walk = (folder) => {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (statSync(path).isDirectory()) walk(path);
    else if (!/\.(gz|br)$/.test(name)) files.push(path);
  }
};
walk('dist');

const html = readFileSync('dist/index.html', 'utf8');
let first = 0, all = 0;
for (const path of files) {
  const raw = readFileSync(path);
  const gzip = gzipSync(raw, {level: 9});
  writeFileSync(path + '.gz', gzip);
  writeFileSync(path + '.br', brotliCompressSync(raw, {params: {[constants.BROTLI_PARAM_QUALITY]: 11}}));
  all += gzip.length;
  if (path.endsWith('index.html') || html.includes(path.replaceAll('\\', '/').replace(/^dist\//, '/ui/'))) first += gzip.length;
}
console.log(`gzip: first view ${first} of at most ${kFirst} bytes, everything ${all} of at most ${kAll}`);
if (first > kFirst || all > kAll) {
  console.error('the page is too large');
  process.exit(1);
}
