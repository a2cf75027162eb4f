/** Writes the types of the API client from the program's OpenAPI document. */
import { readFileSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';

const document = JSON.parse(
  readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'),
);
const output = new URL('../src/lib/api/schema.d.ts', import.meta.url);
writeFileSync(
  output,
  `// Generated from docs/openapi.json.\n${astToString(await openapiTS(document, { defaultNonNullable: false }))}`,
);
