/** Prints one line a problem by Redocly's recommended rules. Arguments: the document. */
import { createConfig, lint } from '@redocly/openapi-core'

const config = await createConfig({ extends: ['recommended'] })
for (const { severity, ruleId, message, location } of await lint({ ref: process.argv[2], config }))
  process.stdout.write(`${severity} ${ruleId} ${location[0]?.pointer ?? ''}: ${message}\n`)
