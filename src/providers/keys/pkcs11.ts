/**
 * Keys in tokens, by PKCS#11: hardware security modules, their network clients, and SoftHSM. The private keys never leave the token.
 * @see https://docs.oasis-open.org/pkcs11/pkcs11-base/v2.40/pkcs11-base-v2.40.html
 */
import type { Handle, Mechanism, PKCS11 } from 'pkcs11js'
import { random } from '../../core/base/random.ts'
import { timers } from '../../core/base/timers.ts'
import type { TokenReference } from '../../core/config/key-reference.ts'
import type { KeyAlgorithm, KeyStore } from './port.ts'

/** Operations at a time: a session has one, and small tokens have few sessions. */
const MAX_SESSIONS = 4
/** How long an operation may take. */
const TIMEOUT_MS = 10_000
/** Between two restarts of the library, which a lost token causes. */
const RESTART_MS = 2_000
const IV_BYTES = 12
const TAG_BYTES = 16
/** Bound to what is wrapped, so that nothing else encrypted by the key is taken for a secret. */
const WRAPPED = Buffer.from('bursar wrapped secret')
/** Mechanism of PKCS#11 3.0, which the package does not name. */
const CKM_EDDSA = 0x1057

/** Curve names in DER: an object identifier or, for Ed25519, also a string. */
const curves: Readonly<
  Record<KeyAlgorithm, { readonly parameters: readonly string[]; readonly bytes: number }>
> = {
  secp256k1: { parameters: ['06052b8104000a'], bytes: 65 },
  Ed25519: {
    parameters: ['06032b6570', '06092b06010401da470f01', '130c656477617264733235353139'],
    bytes: 32,
  },
}

/** @property module path of the token's library. */
export interface Pkcs11Config {
  readonly module: string | null
  readonly pin: string | null
}

type Library = typeof import('pkcs11js')

/** A token that is logged in to. @property free sessions without an operation. @property found handles of keys. */
interface Token {
  readonly slot: Handle
  readonly free: Handle[]
  readonly found: Map<string, { readonly handle: Handle; readonly publicKey: Uint8Array }>
}

/** @throws Error when the package or the library of the token is missing. */
export async function createPkcs11Store({ module, pin }: Pkcs11Config): Promise<KeyStore<TokenReference>> {
  if (module === null) throw new Error('PKCS11_MODULE is missing: it is the path of its library')
  if (pin === null)
    throw new Error('PKCS11_PIN_FILE is missing: it is the path of the file with the PIN of its user')
  const library = await loadPackage()
  const loaded = loadModule(library, module)
  const tokens = new Map<string, Token>()
  /** Tokens that have refused the PIN. Another attempt could lock them. */
  const refused = new Map<string, Error>()
  const waiting: (() => void)[] = []
  let busy = 0
  /** Operations in the library, with those that nobody awaits any more. */
  let running = 0
  /** False while the library cannot begin without its token. */
  let isReady = true
  let lastRestart = Number.NEGATIVE_INFINITY

  function connect(reference: TokenReference): Token {
    const name = JSON.stringify([reference.token, reference.serial])
    const known = tokens.get(name)
    if (known !== undefined) return known
    const refusal = refused.get(name)
    if (refusal !== undefined) throw refusal
    const slot = findSlot(loaded, reference)
    const session = loaded.C_OpenSession(slot, library.CKF_SERIAL_SESSION)
    try {
      loaded.C_Login(session, library.CKU_USER, pin ?? '')
    } catch (error) {
      if (!isFault(error, library.CKR_USER_ALREADY_LOGGED_IN)) {
        loaded.C_CloseSession(session)
        if (/^CKR_PIN_/.test(describe(error))) {
          const fault = new Error(
            `it refuses the PIN (${describe(error)}); it is not asked again before a restart`,
          )
          refused.set(name, fault)
          throw fault
        }
        throw error
      }
    }
    const token = { slot, free: [session], found: new Map() }
    tokens.set(name, token)
    return token
  }

  /** Ends all sessions, so that the next operation begins anew. Ending the last one is a logout. */
  function disconnect(reference: TokenReference): void {
    const name = JSON.stringify([reference.token, reference.serial])
    const token = tokens.get(name)
    tokens.delete(name)
    if (token === undefined) return
    try {
      loaded.C_CloseAllSessions(token.slot)
    } catch {
      // The token is not there.
    }
  }

  /** Begins anew: some libraries notice only then that a token is back. Every session ends. */
  function restart(): void {
    tokens.clear()
    lastRestart = timers.monotonic()
    if (isReady) loaded.C_Finalize()
    isReady = false
    initialize(library, loaded)
    isReady = true
  }

  /** Runs an operation in a session of its own. */
  async function inSession<Result>(
    reference: TokenReference,
    work: (session: Handle, token: Token) => Promise<Result>,
  ): Promise<Result> {
    while (busy >= MAX_SESSIONS) await new Promise<void>((resolve) => waiting.push(resolve))
    busy += 1
    try {
      const token = connect(reference)
      const session = token.free.pop() ?? loaded.C_OpenSession(token.slot, library.CKF_SERIAL_SESSION)
      const operation = work(session, token)
      running += 1
      const free = () => {
        running -= 1
      }
      operation.then(free, free)
      try {
        return await withinTime(operation)
      } finally {
        // A session of an operation that did not end cannot be used; those of a lost token end together.
        if (await hasEnded(operation)) token.free.push(session)
      }
    } finally {
      busy -= 1
      waiting.shift()?.()
    }
  }

  /** Repeats an operation after a new login: a token that was restarted or put back has forgotten its sessions. */
  async function operate<Result>(
    reference: TokenReference,
    work: (session: Handle, token: Token) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await inSession(reference, work)
    } catch (error) {
      if (!isLoss(error)) throw error
    }
    disconnect(reference)
    try {
      return await inSession(reference, work)
    } catch (error) {
      disconnect(reference)
      // A restart under operations of others would end them.
      const isDue = !isReady || timers.monotonic() - lastRestart > RESTART_MS
      const mayRestart = running === 0 && isDue
      if (!isLoss(error) || !mayRestart) throw error
    }
    restart()
    return inSession(reference, work)
  }

  function findObject(session: Handle, kind: number, { object, id }: TokenReference): Handle {
    loaded.C_FindObjectsInit(session, [
      { type: library.CKA_CLASS, value: kind },
      ...(object === null ? [] : [{ type: library.CKA_LABEL, value: object }]),
      ...(id === null ? [] : [{ type: library.CKA_ID, value: Buffer.from(id, 'hex') }]),
    ])
    const found = loaded.C_FindObjects(session, 2)
    loaded.C_FindObjectsFinal(session)
    const [first, second] = found
    const what =
      { [library.CKO_PRIVATE_KEY]: 'private', [library.CKO_PUBLIC_KEY]: 'public' }[kind] ?? 'secret'
    if (first === undefined) throw new Error(`the token has no ${what} key of this name`)
    if (second !== undefined) throw new Error(`the token has several ${what} keys of this name`)
    return first
  }

  /** Finds a pair in this connection. */
  function findPair(session: Handle, token: Token, reference: TokenReference, algorithm: KeyAlgorithm) {
    const name = JSON.stringify([reference.object, reference.id])
    const known = token.found.get(name)
    if (known !== undefined) return known
    const { parameters, bytes } = curves[algorithm]
    const handle = findObject(session, library.CKO_PRIVATE_KEY, reference)
    const pair = findObject(session, library.CKO_PUBLIC_KEY, reference)
    const [curve, point] = loaded.C_GetAttributeValue(session, pair, [
      { type: library.CKA_EC_PARAMS },
      { type: library.CKA_EC_POINT },
    ])
    if (curve === undefined || !parameters.includes(curve.value.toString('hex')))
      throw new Error(`it is no key on ${algorithm}`)
    const found = { handle, publicKey: readPoint(point?.value ?? Buffer.alloc(0), bytes) }
    token.found.set(name, found)
    return found
  }

  function gcm(iv: Buffer): Mechanism {
    const parameter = {
      type: library.CK_PARAMS_AES_GCM,
      iv,
      ivBits: iv.length * 8,
      aad: WRAPPED,
      tagBits: TAG_BYTES * 8,
    }
    return { mechanism: library.CKM_AES_GCM, parameter }
  }

  return {
    async openKey(reference, algorithm) {
      const { publicKey } = await operate(reference, async (session, token) =>
        findPair(session, token, reference, algorithm),
      )
      const mechanism = { mechanism: algorithm === 'Ed25519' ? CKM_EDDSA : library.CKM_ECDSA }
      return {
        publicKey,
        sign: (data) =>
          operate(reference, async (session, token) => {
            const pair = findPair(session, token, reference, algorithm)
            // After a new login the name may stand for another key.
            if (!Buffer.from(publicKey).equals(pair.publicKey))
              throw new Error('the token has another key of this name than at the start')
            loaded.C_SignInit(session, mechanism, pair.handle)
            return loaded.C_SignAsync(session, Buffer.from(data), Buffer.alloc(128))
          }),
      }
    },
    encrypt: (reference, secret) =>
      operate(reference, async (session) => {
        const iv = random.bytes(IV_BYTES)
        loaded.C_EncryptInit(session, gcm(iv), findObject(session, library.CKO_SECRET_KEY, reference))
        const room = Buffer.alloc(secret.length + TAG_BYTES)
        return Buffer.concat([iv, await loaded.C_EncryptAsync(session, Buffer.from(secret), room)])
      }),
    decrypt: (reference, wrapped) =>
      operate(reference, async (session) => {
        const bytes = Buffer.from(wrapped)
        const key = findObject(session, library.CKO_SECRET_KEY, reference)
        loaded.C_DecryptInit(session, gcm(bytes.subarray(0, IV_BYTES)), key)
        try {
          return await loaded.C_DecryptAsync(session, bytes.subarray(IV_BYTES), Buffer.alloc(bytes.length))
        } catch (cause) {
          // Libraries differ in how they say so, and a lost token fails again at its next operation.
          throw new Error(
            `it does not open the wrapped secret (${describe(cause)}), which another key has wrapped, or which was changed`,
            { cause },
          )
        }
      }),
    async close() {
      for (const { slot } of tokens.values())
        try {
          loaded.C_CloseAllSessions(slot)
        } catch {
          // The token is not there.
        }
      tokens.clear()
    },
  }
}

async function loadPackage(): Promise<Library> {
  try {
    const loaded: Library & { readonly default?: Library } = await import('pkcs11js')
    return loaded.default ?? loaded
  } catch (cause) {
    throw new Error(
      'the package pkcs11js is not installed here, or was not compiled. Install a compiler, make and Python, and run: npm install pkcs11js@2.1.7',
      { cause },
    )
  }
}

function loadModule(library: Library, path: string): PKCS11 {
  const loaded = new library.PKCS11()
  try {
    loaded.load(path)
  } catch (cause) {
    throw new Error(`PKCS11_MODULE (${path}) is no PKCS#11 library that can be loaded`, { cause })
  }
  initialize(library, loaded)
  return loaded
}

/** A library is begun once in a process. */
function initialize(library: Library, loaded: PKCS11): void {
  try {
    loaded.C_Initialize({ flags: library.CKF_OS_LOCKING_OK })
  } catch (error) {
    if (!isFault(error, library.CKR_CRYPTOKI_ALREADY_INITIALIZED)) throw error
  }
}

const ABSENT = 'TokenAbsent'

/** True for what a token that was lost, and may be back, has caused. */
function isLoss(error: unknown): boolean {
  return isPkcs11Fault(error) || (error instanceof Error && error.name === ABSENT)
}

function findSlot(loaded: PKCS11, { token, serial }: TokenReference): Handle {
  const slots = loaded.C_GetSlotList(true).filter((slot) => {
    const { label, serialNumber } = loaded.C_GetTokenInfo(slot)
    return (
      (token === null || label.trimEnd() === token) && (serial === null || serialNumber.trimEnd() === serial)
    )
  })
  const [first, second] = slots
  if (first === undefined) throw Object.assign(new Error('the token is not there'), { name: ABSENT })
  if (second !== undefined) throw new Error('several tokens have this name; state their serial too')
  return first
}

/** Most tokens wrap the point in an octet string. */
function readPoint(value: Buffer, bytes: number): Uint8Array {
  if (value.length === bytes) return Buffer.from(value)
  if (value.length === bytes + 2 && value[0] === 4 && value[1] === bytes)
    return Buffer.from(value.subarray(2))
  throw new Error('its public key has an unknown form')
}

/** True once an operation has a result, whatever it is. */
function hasEnded(operation: Promise<unknown>): Promise<boolean> {
  const isOver = () => true
  return Promise.race([operation.then(isOver, isOver), Promise.resolve().then(() => false)])
}

async function withinTime<Result>(work: Promise<Result>): Promise<Result> {
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = timers.after(TIMEOUT_MS, () =>
      reject(new Error(`the token did not answer in ${TIMEOUT_MS / 1000} s`)),
    )
  })
  try {
    return await Promise.race([work, late])
  } finally {
    cancel()
  }
}

function isPkcs11Fault(error: unknown): boolean {
  return error instanceof Error && error.name === 'Pkcs11Error'
}

function isFault(error: unknown, ...codes: readonly number[]): boolean {
  return (
    isPkcs11Fault(error) &&
    error instanceof Error &&
    'code' in error &&
    codes.some((code) => code === error.code)
  )
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
