/** Payees on one line. */
import { expect, it } from 'vitest'
import { namePayee } from '../../src/console/words/names.ts'

it.each([
  ['0x71C7656EC7ab88b098defB751B7401B5f6d8976F', '0x71C7…976F'],
  ['https://weather-data.example', 'weather-data.example'],
  ['https://weather-data.example:8443', 'weather-data.example:8443'],
  ['http://127.0.0.1:4020', 'http://127.0.0.1:4020'],
  ['https://shop.example/a', 'https://shop.example/a'],
  ['Example Books', 'Example Books'],
])('names the payee %s as %s', (payee, name) => expect(namePayee(payee)).toBe(name))
