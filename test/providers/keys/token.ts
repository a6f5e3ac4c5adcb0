/** A token of SoftHSM for tests: made with the commands that docs/keys.md names. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MODULE = ['/usr/lib/softhsm/libsofthsm2.so', '/usr/local/lib/softhsm/libsofthsm2.so'].find(existsSync)
const PIN = '482913'

/** Where SoftHSM and the tool of OpenSC are installed, and the optional package was compiled. */
export function hasSoftHsm(): boolean {
  return (
    MODULE !== undefined &&
    existsSync('/usr/bin/pkcs11-tool') &&
    existsSync('node_modules/pkcs11js/build/Release')
  )
}

export interface TestToken {
  readonly module: string
  readonly pin: string
  /** Directory with the token's files. */
  readonly directory: string
  /** Of the library. */
  readonly configuration: string
  /** Settings of a gateway in another process. */
  readonly env: Readonly<Record<string, string>>
  /** @param arguments_ after those that name the token. */
  tool(...arguments_: readonly string[]): string
  makePair(curve: 'secp256k1' | 'edwards25519', label: string): void
  makeWrapping(label: string): void
}

/** Makes a token with the label `bursar`, in a directory of its own. */
export function makeToken(): TestToken {
  if (MODULE === undefined) throw new Error('SoftHSM is not installed')
  const place = mkdtempSync(join(tmpdir(), 'token-'))
  const directory = join(place, 'tokens')
  mkdirSync(directory)
  const configuration = join(place, 'softhsm2.conf')
  writeFileSync(
    configuration,
    `directories.tokendir = ${directory}\nobjectstore.backend = file\nlog.level = ERROR\n`,
  )
  const options = {
    encoding: 'utf8',
    env: { ...process.env, SOFTHSM2_CONF: configuration },
    stdio: 'pipe',
  } as const
  execFileSync(
    'softhsm2-util',
    ['--init-token', '--free', '--label', 'bursar', '--so-pin', '87654321', '--pin', PIN],
    options,
  )
  const tool = (...more: readonly string[]) =>
    execFileSync(
      'pkcs11-tool',
      ['--module', MODULE, '--token-label', 'bursar', '--login', '--pin', PIN, ...more],
      options,
    )
  return {
    module: MODULE,
    pin: PIN,
    directory,
    configuration,
    env: { SOFTHSM2_CONF: configuration, PKCS11_MODULE: MODULE, PKCS11_PIN: PIN },
    tool,
    makePair: (curve, label) =>
      void tool('--keypairgen', '--key-type', `EC:${curve}`, '--label', label, '--usage-sign'),
    makeWrapping: (label) =>
      void tool(
        '--keygen',
        '--key-type',
        'AES:32',
        '--label',
        label,
        '--sensitive',
        '--usage-wrap',
        '--usage-decrypt',
      ),
  }
}
