/** Prints the script of each page of the console: `npm run sizes`. */
import { measureSizes } from './measure-sizes.ts'

const kilobytes = (bytes: number) => (bytes / 1000).toFixed(1).padStart(8)

process.stdout.write(
  `${[
    'Kilobytes of script, compressed: own is what a page adds to the frame, all is a direct visit.',
    `${'page'.padEnd(32)}${'own'.padStart(8)}${'all'.padStart(8)}`,
    ...measureSizes().map(({ name, own, all }) => `${name.padEnd(32)}${kilobytes(own)}${kilobytes(all)}`),
  ].join('\n')}\n`,
)
