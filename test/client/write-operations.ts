/** Writes `src/client/operations.ts`. `npm run client`. */
import { writeFileSync } from 'node:fs'
import { operationsText } from './operations-text.ts'

writeFileSync('src/client/operations.ts', operationsText())
