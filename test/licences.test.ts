/** NOTICE names what is installed under a licence that is not permissive, as the lock file knows it. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { z } from 'zod'

const permissive =
  /^(0BSD|Apache-2\.0|BSD-[23]-Clause|BlueOak-1\.0\.0|ISC|MIT|MIT-0|Unlicense|MIT OR Apache-2\.0)$/
/** Their packages name none: the binaries of anvil for other machines, and packages whose README or LICENSE says MIT. */
const unnamed = /^(@foundry-rs\/anvil-\w+-\w+|ivms101|png-js)$/

const lock = z
  .object({
    packages: z.record(
      z.string(),
      z.object({
        license: z.string().optional(),
        dev: z.boolean().optional(),
        optional: z.boolean().optional(),
        link: z.boolean().optional(),
      }),
    ),
  })
  .parse(JSON.parse(readFileSync('package-lock.json', 'utf8')))
const notice = readFileSync('NOTICE', 'utf8')
const shipped = Object.entries(lock.packages)
  .filter(([path, { dev, link }]) => path.startsWith('node_modules/') && dev !== true && link !== true)
  .map(([path, rest]) => ({ name: path.replace(/^.*node_modules\//, ''), ...rest }))

it('names every package that is shipped under another licence', () => {
  const others = shipped.filter(
    ({ name, license }) => !permissive.test(license ?? '') && !(license === undefined && unnamed.test(name)),
  )
  expect(others.length).toBeGreaterThan(0)
  for (const { name, license } of others)
    expect(notice).toMatch(new RegExp(`^ {2}${name} +${license?.replaceAll('.', '\\.')} `, 'm'))
})

it('can be installed without what is under the GPL or the LGPL', () => {
  const copyleft = shipped.filter(({ name }) => /^(@safe-global\/|@account-abstraction\/)/.test(name))
  expect(copyleft.map(({ name, optional }) => [name, optional])).toEqual([
    ['@account-abstraction/contracts', true],
    ['@safe-global/safe-4337', true],
    ['@safe-global/safe-contracts', true],
    ['@safe-global/safe-passkey', true],
  ])
  for (const { name, license, optional } of shipped)
    if (/GPL/.test(license ?? '')) expect([name, optional]).toEqual([name, true])
})
