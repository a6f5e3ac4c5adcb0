/** Prints what tools/list costs a model, by tool: `npm run tokens`. */
import { buildCatalogue } from '../../src/kernel/catalogue.ts'
import { tools } from '../../tools/index.ts'
import { countTokens } from './count-tokens.ts'

const counted = countTokens(buildCatalogue(tools, { mode: 'sandbox', guests: true }))
const sum = (column: 'asked' | 'answered') => counted.reduce((total, tool) => total + tool[column], 0)
const line = (name: string, asked: number | string, answered: number | string) =>
  `${name.padEnd(30)}${String(asked).padStart(8)}${String(answered).padStart(10)}`

process.stdout.write(
  `${[
    'Tokens, at four characters each: asked is name, description and input schema; answered is the output schema.',
    line('tool', 'asked', 'answered'),
    ...counted.map(({ name, asked, answered }) => line(name, asked, answered)),
    line(`${counted.length} tools`, sum('asked'), sum('answered')),
  ].join('\n')}\n`,
)
