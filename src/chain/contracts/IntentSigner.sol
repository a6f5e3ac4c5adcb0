// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The part of Safe's factory of passkey signers that is used here.
interface IPasskeySigners {
    function isValidSignatureForSigner(
        bytes32 message,
        bytes calldata signature,
        uint256 x,
        uint256 y,
        uint176 verifiers
    ) external view returns (bytes4);
}

/// @notice A Safe owner backed by a passkey. The passkey signs an intent, a JSON text that names the Safe's operation by
/// its hash, so that one signature covers both what the person reads and what the chain executes.
contract IntentSigner {
    /// @dev Text before the hash. It cannot occur inside a JSON string, where its quotes would be escaped.
    bytes private constant MEMBER = '"operationHash":"0x';

    /// @dev EIP-1271 return values: Safe 1.4.1 passes the data, all other callers its hash.
    bytes4 private constant VALID_DATA = 0x20c13b0b;
    bytes4 private constant VALID_HASH = 0x1626ba7e;

    IPasskeySigners private immutable SIGNERS;
    uint256 private immutable X;
    uint256 private immutable Y;
    uint176 private immutable VERIFIERS;

    constructor(IPasskeySigners signers, uint256 x, uint256 y, uint176 verifiers) {
        (SIGNERS, X, Y, VERIFIERS) = (signers, x, y, verifiers);
    }

    /// @param data preimage of the operation's hash.
    /// @param signature the intent's text before and after the hash, and the passkey's assertion in Safe's encoding.
    function isValidSignature(bytes calldata data, bytes calldata signature) external view returns (bytes4) {
        (bytes memory head, bytes memory tail, bytes memory assertion) = abi.decode(signature, (bytes, bytes, bytes));
        if (!_endsWithMember(head)) return 0;
        bytes32 challenge = sha256(abi.encodePacked(head, _hexOf(keccak256(data)), tail));
        bytes4 answer = SIGNERS.isValidSignatureForSigner(challenge, assertion, X, Y, VERIFIERS);
        return answer == VALID_HASH ? VALID_DATA : bytes4(0);
    }

    function _endsWithMember(bytes memory head) private pure returns (bool) {
        bytes memory member = MEMBER;
        if (head.length < member.length) return false;
        uint256 start = head.length - member.length;
        for (uint256 i = 0; i < member.length; ++i) if (head[start + i] != member[i]) return false;
        return true;
    }

    function _hexOf(bytes32 hash) private pure returns (bytes memory text) {
        bytes16 digits = "0123456789abcdef";
        text = new bytes(64);
        for (uint256 i = 0; i < 32; ++i) {
            text[2 * i] = digits[uint8(hash[i]) >> 4];
            text[2 * i + 1] = digits[uint8(hash[i]) & 15];
        }
    }
}
