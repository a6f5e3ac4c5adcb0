/** Writes what follows from the tools: `src/client/operations.ts`, and the table in `docs/agents.md`. `npm run client`. */
import { writeFileSync } from 'node:fs'
import { TABLE_FILE, withTable } from '../docs/tools-table.ts'
import { operationsText } from './operations-text.ts'

writeFileSync('src/client/operations.ts', operationsText())
writeFileSync(TABLE_FILE, withTable())
